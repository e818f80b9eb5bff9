"""Tests search in slices: the result does not depend on them, and the limits hold."""

import functools
import itertools
import time

import jax
import numpy as np
import pytest

from alphagat.agents.agent import Agent
from alphagat.cli import analyze, engine_options, gtp, uci
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.serving.protocols import thinking
from alphagat.serving.protocols.clock import Clock, seconds_with_increment
from alphagat.serving.protocols.thinking import Thinker
from tests.search.evaluators import make_table_evaluator, some_positions
from tests.search.one_position import make_batched_growing_search
from tests.serving.agents import make_agent

GAME = make_game("tic_tac_toe")
CAPACITY = 96


@functools.cache
def thinker(num_leaves):
    return Thinker(make_agent("tic_tac_toe", make_table_evaluator(GAME)), CAPACITY, num_leaves)


@pytest.fixture
def slow(monkeypatch):
    """Mocks the clock: every slice takes 0.05 seconds, at about 100 simulations per second."""
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks) * 0.05)
    for num_leaves in (1, 8):
        monkeypatch.setattr(thinker(num_leaves), "speed", 100.0)


@pytest.fixture
def state():
    return jax.tree.map(np.asarray, first_state(GAME))


@pytest.mark.parametrize("num_leaves", [1, 8])
def test_result_does_not_depend_on_slices(num_leaves, slow):
    search = make_batched_growing_search(GAME, make_table_evaluator(GAME), num_simulations=50, num_leaves=num_leaves)
    states, plies = some_positions(GAME, 4)
    for row in range(4):
        one = jax.tree.map(lambda x, row=row: x[row : row + 1], states)
        expected = jax.jit(search)(None, jax.random.key(0), one, plies[row : row + 1])
        slices = list(thinker(num_leaves).think(jax.tree.map(lambda x: x[0], one), 50))
        analysis = thinker(num_leaves).analyze(jax.tree.map(lambda x: x[0], one), 50)
        assert len(slices) > 2
        assert analysis.action == expected.action[0]
        np.testing.assert_array_equal(analysis.visits, expected.root.visits[0])
        np.testing.assert_array_equal(analysis.variations, expected.root.variations[0])
        np.testing.assert_allclose(analysis.value, expected.value[0], rtol=1e-6)
        assert analysis.variation[0] == analysis.action


def test_the_discount_of_the_run_applies(state):
    evaluate, config = make_table_evaluator(GAME), Config(boards=(GAME.name,))
    config.search.discount = 0.5
    analysis = Thinker(Agent(GAME, config, 0, None, evaluate), CAPACITY, 1).analyze(state, 50)
    search = make_batched_growing_search(GAME, evaluate, num_simulations=50, num_leaves=1, discount=0.5)
    expected = jax.jit(search)(None, jax.random.key(0), jax.tree.map(lambda x: x[None], state), np.zeros(1, int))
    np.testing.assert_array_equal(analysis.visits, expected.root.visits[0])
    np.testing.assert_allclose(analysis.value, expected.value[0], rtol=1e-6)


def test_stops_by_simulations_time_and_capacity(state, slow):
    numbers = [progress.simulations for progress in thinker(1).think(state, 30)]
    assert numbers[-1] == 30
    assert numbers == sorted(set(numbers))
    assert thinker(1).analyze(state).visits.sum() == CAPACITY
    assert thinker(1).analyze(state, 10 * CAPACITY).visits.sum() == CAPACITY
    *_, last = thinker(1).think(state, seconds=0.2)
    assert 0 < last.simulations < 30
    assert 0.199 < last.seconds < 0.301
    assert thinker(1).analyze(state, seconds=0.0).visits.sum() > 0  # even without time there is a move


def test_a_kept_tree_counts_toward_the_limit(state):
    """The search of the next position starts with the kept subtree and has the same total of simulations."""
    agent = make_agent("tic_tac_toe", make_table_evaluator(GAME))
    keeping = Thinker(agent, CAPACITY, 1, keeps_tree=True)
    before = keeping.analyze(state, 60)
    assert before.visits.sum() == 60
    after = GAME.step(state, before.action, jax.random.key(0))
    retained = before.visits[before.action] - 1
    assert retained > 10
    first, *_ = keeping.think(after, simulations=60)
    assert retained < first.simulations <= 60
    assert first.made == first.simulations - retained
    enough = keeping.analyze(after, simulations=5)
    assert enough.visits.sum() == first.simulations
    assert keeping.analyze(state, 60).visits.tolist() == before.visits.tolist()  # an earlier position starts a new tree
    assert thinker(1).analyze(after, 5).visits.sum() == 5
    keeping.analyze(after, 30)
    keeping.forget()
    assert keeping.analyze(after, 5).visits.sum() == 5


@pytest.fixture
def made(monkeypatch):
    """Ends a command before its search; returns a list to which each search adds its capacity, leaves and keeping of
    trees.
    """
    agent, found = thinker(1).agent, []

    def make(_, max_simulations, num_leaves=None, *, keeps_tree):
        found.append((max_simulations, num_leaves, keeps_tree))
        raise UserError("enough")

    monkeypatch.setattr(thinking, "Thinker", make)
    monkeypatch.setattr(engine_options, "open_agent", lambda *_: agent)
    return found


@pytest.mark.parametrize("engine", [gtp, uci])
@pytest.mark.parametrize("flags", [[], ["--new_trees"]])
def test_engines_keep_trees_by_default(engine, flags, made):
    assert engine.run(["runs/1", *flags]) == 2
    assert [keeps_tree for *_, keeps_tree in made] == [not flags]


@pytest.mark.parametrize("engine", [gtp, uci])
def test_engines_search_with_as_many_leaves_as_asked(engine, made):
    assert engine.run(["runs/1", "--max_simulations", "50", "--leaves", "3"]) == 2
    assert made == [(50, 3, True)]


@pytest.mark.parametrize("engine", [gtp, uci])
def test_a_move_may_have_more_simulations_than_a_clock_allows(engine, made):
    assert engine.run(["runs/1", "--max_simulations", "50", "--simulations", "60"]) == 2
    assert [capacity for capacity, *_ in made] == [60]


@pytest.mark.parametrize("command", [gtp, uci, analyze])
def test_engines_average_over_symmetries(command, monkeypatch):
    asked = []

    def load(*_, symmetries, **__):
        asked.append(symmetries)
        raise UserError("enough")

    monkeypatch.setattr("alphagat.agents.agent.load", load)
    for flags in ([], ["--symmetries", "2"]):
        assert command.run(["runs/1", *flags]) == 2
    assert asked == [1, 2]


def test_a_clock_shares_the_remaining_time():
    assert Clock(main=38.0).seconds_for_move(plies_left=40) == pytest.approx(3.8 * 0.95 - 0.05)
    assert Clock(main=400.0).seconds_for_move(1000) == pytest.approx(10 * 0.95 - 0.05)
    assert Clock(0.0, overtime=30.0, moves=5).seconds_for_move(4) == pytest.approx(6 * 0.95 - 0.05)
    assert Clock(0.0).seconds_for_move(100) == 0.01
    clock = Clock(main=5.0)
    clock.spend(2.0)
    assert clock.main == 3.0
    clock.spend(20.0)
    assert clock.main == 0.0


def test_an_increment_is_not_spent_in_advance():
    assert seconds_with_increment(40.0, 2.0, None, 1000) == pytest.approx(3 * 0.95 - 0.05)
    assert seconds_with_increment(1.0, 10.0, None, 1000) == pytest.approx(0.95 - 0.05)
    assert seconds_with_increment(60.0, 0.0, 2, 1000) == pytest.approx(30 * 0.95 - 0.05)


def test_the_last_slice_fits_the_time_that_is_left(state, slow):
    first, *_ = thinker(1).think(state, seconds=0.075)  # 0.05 are spent already
    assert first.simulations == 2


def test_setting_up_the_tree_counts_as_time(state, slow, monkeypatch):
    begin = thinker(1)._begin
    monkeypatch.setattr(thinker(1), "_begin", lambda state: [time.monotonic(), begin(state)][1])
    first, *_ = thinker(1).think(state, 1)
    assert first.seconds == pytest.approx(0.2)  # four readings of the clock


def test_the_batches_of_a_search_depend_on_the_device():
    expected = 1 if jax.default_backend() == "cpu" else thinking.ACCELERATOR_LEAVES
    assert Thinker(thinker(1).agent, CAPACITY)._num_leaves == expected
