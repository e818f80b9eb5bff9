"""Held-out metrics equal values computed by hand."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.learner.update import TrainState, make_health
from alphagat.runs.metrics import Result
from alphagat.runtime import sharding
from alphagat.training import evaluation
from alphagat.training.pretraining import holdout
from alphagat.training.pretraining.holdout import _chunks, describe, make_holdout_sums
from alphagat.training.pretraining.positions import Positions, Split
from alphagat.training.setup import Setup
from tests.evaluation.perfect_games import BOARD, solved

GAME = make_game(BOARD)
LEGAL = 3  # the feature that shows legal moves
SUMS = ("positions", "named_first", "cross_entropy", "known", "squared_error", "decided", "agrees")


def test_metrics_equal_values_by_hand():
    """A table prefers the first legal action, twice as likely as each other one."""
    positions, _ = solved()
    rows = np.flatnonzero(~positions.states.terminated)[:21]
    states = Positions(positions.states, *[np.zeros(len(positions.values))] * 5).take(rows).state
    generator = np.random.default_rng(1)
    legal = states.legal_action_mask
    moves = np.array([generator.choice(np.flatnonzero(row)) for row in legal], np.int32)
    values = generator.choice([-1.0, 0.0, 1.0], len(rows)).astype(np.float32)
    known = generator.choice([0.0, 1.0], len(rows)).astype(np.float32)
    weight = generator.choice([0.0, 2.0], len(rows)).astype(np.float32)
    known[0] = weight[0] = 1  # the first positions pad the last chunk but count once
    held_out = Positions(states, moves, weight, values, known, np.zeros(len(rows), np.int32))

    def apply(params, nodes, edges):
        assert edges is None
        first = nodes[:, :, LEGAL].argmax(-1)
        logits = jnp.where(jnp.arange(9)[None] == first[:, None], params, 0.0)
        return logits, jnp.full(len(first), 0.25)

    network = SimpleNamespace(apply=apply, value_support=None)
    setup = Setup(None, GAME, None, network, None, None, None)  # type: ignore[arg-type]
    examine = make_holdout_sums(setup, sharding.make_mesh(2))
    sums = [examine(jnp.float32(np.log(2)), chunk) for chunk in _chunks(held_out, 8)]
    found = describe({name: float(sum(each[name] for each in sums)) for name in sums[0]})
    taught, first = weight > 0, legal.argmax(-1)
    chance = np.where(moves == first, 2, 1) / (legal.sum(-1) + 1)
    assert found["policy_accuracy"] == pytest.approx((moves == first)[taught].mean())
    assert found["policy_loss"] == pytest.approx(-np.log(chance[taught]).mean(), rel=1e-5)
    assert found["value_error"] == pytest.approx(np.square(0.25 - values[known > 0]).mean(), rel=1e-5)
    assert found["value_sign"] == pytest.approx((values > 0)[(known > 0) & (values != 0)].mean())
    assert 0 < found["policy_accuracy"] < 1


def test_an_empty_count_gives_nan():
    assert all(np.isnan(value) for value in describe(dict.fromkeys(SUMS, 0.0)).values())


def test_results_count_all_chunks_of_a_board(monkeypatch):
    def examine(params, chunk):
        return dict.fromkeys(SUMS, chunk.policy_weight.sum()) | {"agrees": (chunk.policy_weight * chunk.state).sum()}

    monkeypatch.setattr(holdout, "make_holdout_sums", lambda *_: examine)
    held_out = Positions(np.array([1, 0, 0, 0, 1]), *[np.ones(5, np.float32)] * 5)
    learner = SimpleNamespace(batch_size=2)
    setups = [
        SimpleNamespace(game=make_game(name), config=SimpleNamespace(learner=learner)) for name in (BOARD, "hex:2")
    ]
    run = SimpleNamespace(config=SimpleNamespace(boards=()), mesh=sharding.make_mesh(2), boards=setups)
    recorded = SimpleNamespace(boards=(Split(held_out, held_out), Split(held_out, None)))
    results = holdout.Holdout(run, recorded).measure(None)
    assert {each.board for each in results} == {BOARD}
    assert [each.value for each in results if each.name == "holdout/value_sign"] == [pytest.approx(0.4)]


def test_the_average_is_measured(monkeypatch):
    measured, average, results = [], jnp.ones(3), [Result("holdout/value_sign", BOARD, 0.5)]
    held_out = SimpleNamespace(boards=(BOARD,), measure=lambda params: measured.append(params) or results)
    monkeypatch.setattr(evaluation, "Holdout", lambda run, recorded: held_out)
    train = TrainState(jnp.zeros(3), None, jnp.zeros((), jnp.int32), make_health(scale_loss=False), average)
    state = SimpleNamespace(train=train, evaluated=0, iteration=jnp.int32(1), replace=lambda **changes: changes)
    evaluator = evaluation.RunEvaluator(SimpleNamespace(boards=(), mesh=None), "recorded")
    evaluator.describe_start(state)
    _, found = evaluator.evaluate(state, 1, lambda _: None)
    assert found.results == results
    assert [params is average for params in measured] == [True, True]
