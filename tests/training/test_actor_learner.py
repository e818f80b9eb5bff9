"""Actors and learners on separate devices: the same games and updates, one iteration apart."""

import shutil

import jax
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints
from alphagat.runtime import sharding
from alphagat.training import loop
from alphagat.training.actor_learner import PARAMS_AGE, ActorLearnerIterations
from alphagat.training.iteration import make_iteration, run_iteration
from alphagat.training.loop import train
from alphagat.training.setup import make_run, make_setups
from alphagat.training.state import RunState, init_state, placed_shapes, with_params
from tests.training.tiny import run_of, tiny_config

ITERATIONS = 5
NEVER = 10**6


def config_of(actors: int = 2, *, boards: tuple[str, ...] = ("hex:2",), actor_sync_every: int = 1):
    config = tiny_config()
    config.boards, config.mesh.data, config.mesh.actors = boards, 4 if actors else 1, actors
    config.learner.actor_sync_every = actor_sync_every
    config.evaluation.every = 0
    return config


def start(config) -> tuple[ActorLearnerIterations, RunState]:
    run = make_run(config, sharding.make_mesh(config.mesh.data))
    state = init_state(run)
    return ActorLearnerIterations(run, state, pytest.fail), state


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(one), jax.device_get(other))


def devices_of(tree) -> set[int]:
    return {device.id for leaf in jax.tree.leaves(tree) for device in leaf.sharding.device_set}


@pytest.mark.parametrize("full_search_fraction", [1.0, 0.5])
def test_constant_parameters_match_one_device_one_iteration_late(full_search_fraction: float):
    """With nearly constant parameters, the games equal those of one device; replay and losses lag one iteration."""
    configs = config_of(actor_sync_every=NEVER), config_of(0)
    for config in configs:
        config.learner.learning_rate = 1e-30
        config.selfplay.full_search_fraction = full_search_fraction
    iterations, state = start(configs[0])
    (setup,), mesh = make_setups(configs[1]), sharding.make_mesh(1)
    together, program = init_state(run_of(setup, mesh)), make_iteration(setup, mesh)
    late = losses = None
    for iteration in range(1, ITERATIONS + 1):
        state, metrics, audit = iterations.run(state, iteration)
        together, expected, _ = run_iteration(program, together)
        assert_equal(state.boards[0].games, together.boards[0].games)
        assert int(state.iteration) == int(together.iteration) == iteration
        assert {name: float(metrics[name]) for name in ("full_plies", "games")} == {
            name: float(expected[name]) for name in ("full_plies", "games")
        }
        assert int(np.asarray(audit.iteration)[0]) == iteration - 1
        if late is not None:
            assert_equal(state.boards[0].replay, late)
            for name in ("train/policy_loss", "train/value_loss"):
                np.testing.assert_allclose(metrics[name], losses[name], rtol=1e-5)
        late, losses = jax.device_get((together.boards[0].replay, expected))
    assert np.isfinite(losses["train/policy_loss"])


def test_actors_play_with_their_own_parameters():
    iterations, state = start(config_of(actor_sync_every=NEVER))
    other = jax.tree.map(lambda x: 3 * np.asarray(x), state.train.params)
    games = []
    for actors in (state.actors, with_params(state, other).actors):
        copied = jax.tree.map(lambda x: x.copy(), state).replace(actors=actors)
        for iteration in (1, 2):
            copied, *_ = iterations.run(copied, iteration)
        games.append(jax.device_get(copied.boards[0].games.waiting.policy_target))
    assert np.abs(games[0] - games[1]).max() > 0.01


@pytest.mark.parametrize("every", [1, 3])
def test_parameters_are_synchronized_and_their_age_is_reported(every: int):
    """From the second iteration on, each has two updates. A block is trained on one iteration after it was played."""
    config = config_of(actor_sync_every=every)
    config.learner.ema_decay = 0.5
    iterations, state = start(config)
    assert [int(state.train.step), int(state.actors.step)] == [0, 0]
    handed, ages, expected = 0, [], []
    played_with = [0]  # updates of the acting parameters in each iteration
    for iteration in range(1, 8):
        before = int(state.train.step)
        state, metrics, _ = iterations.run(state, iteration)
        after = int(state.train.step)
        ages.append(float(metrics[PARAMS_AGE]))
        expected.append(before - played_with[iteration - 2] if iteration > 1 else np.nan)
        if after // every > before // every:
            handed = after
            assert_equal(state.actors.params, state.train.average)
        played_with.append(handed)
        assert int(state.actors.step) == handed
    assert after == 2 * 5
    np.testing.assert_array_equal(ages, expected)
    assert max(ages[1:]) == {1: 2, 3: 4}[every]


def test_arrays_reside_on_the_devices_that_use_them():
    _, state = start(config_of())
    board = state.boards[0]
    assert devices_of((board.games, board.groups, state.actors.params)) == {0, 1}
    assert devices_of((state.train, board.replay, board.block, state.key, state.previous_params)) == {2, 3}


def test_each_board_stores_its_own_blocks_once_they_are_final():
    """Positions of Hex 2x2 wait for one iteration of their board, those of Hex 3x3 for two."""
    iterations, state = start(config_of(boards=("hex:2", "hex:3")))
    finals = [], []
    for iteration in range(1, 7):
        state, _, audit = iterations.run(state, iteration)
        number = (iteration - 1) % 2
        assert int(np.asarray(audit.iteration)[0]) == (iteration - 1) // 2  # of this board
        finals[number].append(bool(state.boards[number].block.is_final))
    assert finals == ([False, True, True], [False, False, True])


@pytest.mark.usefixtures("programs_once")
def test_resume_is_bit_identical(tmp_path, capsys):
    """With several boards, and with matches on all devices. The run resumes from the checkpoint of iteration 4."""
    config = config_of(boards=("hex:2", "hex:3"), actor_sync_every=3)
    config.num_iterations = config.evaluation.every = 8
    config.evaluation.opponents = ("previous",)
    config.checkpoint.keep = 8
    train(config, tmp_path / "alone")
    shutil.copytree(tmp_path / "alone", tmp_path / "resumed")
    for step in range(5, 9):
        shutil.rmtree(tmp_path / "resumed" / "checkpoints" / str(step))
    train(config, tmp_path / "resumed")
    assert "resumed after iteration 4" in capsys.readouterr().out
    states = []
    for name in ("alone", "resumed"):
        shapes = placed_shapes(make_run(config, sharding.make_mesh(4)))
        states.append(SavedCheckpoints(tmp_path / name).restore(shapes, 8))
    assert_equal(*states)
    lines = read_metrics(tmp_path / "resumed")
    assert [line.get("trained_board") for line in lines] == [None, *(line["board"] for line in lines[:-1])]
    (before, *_, last) = lines
    assert before[next(name for name in before if name.endswith("params_age"))] is None
    assert any(name.endswith("params_age") and value >= 0 for name, value in last.items())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"actors": 4}, r"config\.mesh\.actors=4: it must leave some of the 4 devices"),
        ({"actors": 8, "data": 0}, r"config\.mesh\.actors=8 leaves no learner among 8 devices: set it to 4"),
        (
            {"actors": 3},
            r"config\.selfplay\.num_groups=8 is not a multiple of 3, the number of actors or learners among 4",
        ),
        ({"model": 2}, r"config\.mesh\.model=2: config\.mesh\.actors=2 needs a network on one device; set it to 1"),
    ],
)
def test_invalid_actor_configs_are_refused(changes, reason, tmp_path):
    config = config_of()
    for name, value in changes.items():
        setattr(config.mesh, name, value)
    with pytest.raises(UserError, match=reason):
        train(config, tmp_path)
    assert not any(tmp_path.iterdir())


def test_resume_refuses_to_change_the_kind_of_run(tmp_path, monkeypatch):
    monkeypatch.setattr(loop._Steps, "iterate", lambda *_: None)
    train(config_of(), tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1}\n')
    with pytest.raises(
        UserError, match=r"config\.mesh\.actors=0, but the run in .* has 2: it cannot change from or to 0"
    ):
        train(config_of(0), tmp_path)
