"""Tests the boards that a server offers."""

import jax
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.serving.roster import Program, Roster
from tests.serving.untrained import save_untrained


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("roster")


def test_the_shipped_networks_are_the_default():
    roster = Roster(None)
    assert roster.default == "connect_four"
    assert {"connect_four", "hex:5", "hex:11"} <= set(roster.boards)
    assert not {"tic_tac_toe", "hex:5:swap", "go:9"} & set(roster.boards)  # node kinds unknown to those networks
    assert Roster(None, "hex:9").default == "hex:9"


def test_a_board_is_added_and_opened_once(folder):
    roster = Roster(save_untrained(folder, "hex:2", "hex:3"), "hex:2:swap")
    assert (roster.default, "hex:2" in roster.boards, "hex:2:swap" in roster.boards) == ("hex:2:swap", True, True)
    assert roster.session("hex:2") is roster.session("hex:2")
    assert roster.session("hex:2:swap").game.swap
    for board in ("hex:12", "go:9", "", "../hex:3"):
        with pytest.raises(UserError, match=f"board {board}: it is not played here; use one of hex:3"):
            roster.session(board)


def test_a_resnet_plays_its_board_size_only(folder):
    roster = Roster(save_untrained(folder, "othello:4", name="resnet"))
    assert roster.boards == ("othello:4",)
    assert not roster.session("othello:4").has_attention
    with pytest.raises(UserError, match="'resnet' has weights for one size"):
        Roster(save_untrained(folder, "hex:3", name="resnet"), "hex:4")


@pytest.mark.parametrize("board", ["go:9", "chess"])
def test_boards_of_other_families_raise(folder, board):
    with pytest.raises(UserError, match="boards of one family"):
        Roster(save_untrained(folder, f"breakthrough:{5 + len(board) % 4}"), board)
    with pytest.raises(UserError, match=f"board {board}: no shipped network plays it, only boards of the families"):
        Roster(None, board)


def test_programs_evaluate_batches(folder):
    roster = Roster(save_untrained(folder, "hex:4"))
    state = roster.session("hex:3").games.replay(0, ["b2"]).state
    batch = jax.tree.map(lambda leaf: np.stack([leaf] * 2), state)
    analysis = roster.prepare(Program("hex:3", 0))(batch)
    assert analysis.prior.shape == (2, 9)
    attention = roster.prepare(Program("hex:3", None))(batch)
    assert attention.shape == (2, 1, 2, roster.session("hex:3").game.topology.num_edges)
    assert roster.prepare(Program("hex:3", 0)) is roster.prepare(Program("hex:3", 0))
