"""Weights refer to relations and kinds by their numbers, so these may only change with the version of a vocabulary."""

import hashlib

import pytest

from alphagat.games import make_game

DIGESTS = {  # by board: the version, and a digest of the names
    "hex:7": (1, "d0bf0029f10dd238"),
    "connect_four": (1, "45969ef61af44ee9"),
    "othello:8": (1, "4db609a4e094437a"),
    "breakthrough:8": (1, "2d028f7ef0c90385"),
    "go:9": (1, "f3c3d29fa3eb20d6"),
    "chess": (1, "ad4b41b46d265d9c"),
    "2048": (1, "650ae97c9a848c3e"),
    "tsp:20": (1, "b31631ffe1538ced"),
}


@pytest.mark.parametrize("board", DIGESTS)
def test_a_vocabulary_changes_only_with_its_version(board: str):
    vocabulary = make_game(board).topology.vocabulary
    names = vocabulary.relations, vocabulary.node_kinds, vocabulary.action_kinds
    digest = hashlib.sha256(repr(names).encode()).hexdigest()[:16]
    assert (vocabulary.version, digest) == DIGESTS[board]
