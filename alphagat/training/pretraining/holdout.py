"""Evaluates a network on held-out recorded positions."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagat.learner.loss import policy_loss
from alphagat.networks.placement import place_params
from alphagat.runs.metrics import HOLDOUT, Result
from alphagat.runtime import sharding
from alphagat.search.evaluator import make_plain_evaluator
from alphagat.search.tree import mask_illegal
from alphagat.training.pretraining.dataset import Recorded
from alphagat.training.pretraining.positions import Positions
from alphagat.training.pretraining.program import policy_targets
from alphagat.training.setup import Run, Setup


class Holdout:
    """The held-out positions of all boards that have any."""

    def __init__(self, run: Run, recorded: Recorded):
        self.boards, self._mesh = run.config.boards, run.mesh
        self._boards = [
            (
                setup.game.name,
                _chunks(found.held_out, setup.config.learner.batch_size),
                make_holdout_sums(setup, run.mesh),
            )
            for setup, found in zip(run.boards, recorded.boards)
            if found.held_out is not None
        ]

    def measure(self, params: Any) -> list[Result]:
        """Returns the results of `params` on the held-out positions."""
        results = []
        for name, chunks, examine in self._boards:
            placed = (sharding.place(each, sharding.sharded(self._mesh)) for each in chunks)
            sums = [jax.device_get(examine(params, each)) for each in placed]
            total = {key: float(np.sum([each[key] for each in sums], dtype=np.float64)) for key in sums[0]}
            results += [Result(HOLDOUT + measure, name, value) for measure, value in describe(total).items()]
        return results


def make_holdout_sums(setup: Setup, mesh: Mesh) -> Callable[[Any, Positions], dict[str, jax.Array]]:
    """Returns the jitted `examine(params, positions)`.

    It returns sums of metrics over `[N]` positions, from which `describe` computes means. The number of devices must
    divide N.
    """

    evaluate = make_plain_evaluator(setup.game, setup.network)  # what it learned, without the moves that win at once

    def examine(params: Any, positions: Positions) -> dict[str, jax.Array]:
        params = place_params(setup.network, params)
        found = evaluate(params, positions.state)
        logits = mask_illegal(found.prior_logits, positions.state)
        target = policy_targets(positions.policy, setup.game.num_actions)
        cross_entropy = policy_loss(logits, positions.state.legal_action_mask, target)
        is_taught = (positions.policy_weight > 0).astype(jnp.float32)
        is_decided = positions.value_mask * (positions.value_target != 0)
        agrees = jnp.sign(found.value) == jnp.sign(positions.value_target)
        sums = {
            "positions": is_taught,
            "named_first": is_taught * (logits.argmax(-1) == target.argmax(-1)),
            "cross_entropy": is_taught * cross_entropy,
            "known": positions.value_mask,
            "squared_error": positions.value_mask * jnp.square(found.value - positions.value_target),
            "decided": is_decided,
            "agrees": is_decided * agrees,
        }
        return jax.lax.psum(jax.tree.map(jnp.sum, sums), sharding.DATA)

    return jax.jit(sharding.over_data(examine, mesh, (sharding.REPLICATED, sharding.SHARDED), sharding.REPLICATED))


def describe(sums: dict[str, float]) -> dict[str, float]:
    """Converts sums to means; NaN where nothing was counted.

    `policy_accuracy`: share of positions in which the network ranks the recorded move first. `policy_loss`:
    cross-entropy. `value_error`: mean squared error. `value_sign`: share of positions of decided games in which the
    sign of the value predicts the winner.
    """

    def mean(total: str, count: str) -> float:
        return sums[total] / sums[count] if sums[count] else float("nan")

    return {
        "policy_accuracy": mean("named_first", "positions"),
        "value_sign": mean("agrees", "decided"),
        "policy_loss": mean("cross_entropy", "positions"),
        "value_error": mean("squared_error", "known"),
    }


def _chunks(positions: Positions, size: int) -> list[Positions]:
    """Returns parts of equal size; the last is padded with positions of weight 0."""
    chunks = []
    for start in range(0, positions.size, size):
        rows = np.arange(start, start + size)
        chunk = positions.take(rows % positions.size)
        counts = (rows < positions.size).astype(np.float32)
        chunks.append(chunk.replace(policy_weight=chunk.policy_weight * counts, value_mask=chunk.value_mask * counts))
    return chunks
