"""Auxiliary targets: symmetries of the board permute those that belong to its nodes or actions."""

import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.selfplay.auxiliary_targets import Ownership

GAME = make_game("breakthrough:5")  # actions are pairs of nodes, so the two permutations differ


@pytest.mark.parametrize("permuted", ["nodes", "actions", None])
def test_symmetries_permute_the_axis_of_a_target(permuted: str | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Ownership, "permuted", permuted)
    symmetries, size = GAME.symmetries, GAME.num_actions if permuted == "actions" else GAME.topology.num_nodes
    index = np.arange(symmetries.num_symmetries, dtype=np.int32)
    targets = np.random.default_rng(0).permutation(len(index) * size).reshape(len(index), size)
    found = Ownership().permute(jnp.asarray(targets), jnp.asarray(index), symmetries)
    tables = {"nodes": symmetries.node_permutations, "actions": symmetries.action_permutations}
    for row, (target, which) in enumerate(zip(targets, index, strict=True)):
        expected = target[tables[permuted][which]] if permuted else target
        np.testing.assert_array_equal(found[row], expected)
