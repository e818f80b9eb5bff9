"""A run on recorded games uses the learner of self-play, resumes exactly, and yields an ordinary network."""

import dataclasses
import functools
import sys
from pathlib import Path
from types import SimpleNamespace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alphagat
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.evaluation.game_files import to_text
from alphagat.games.states import first_state
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import check_run_folder
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints
from alphagat.runtime import sharding
from alphagat.training.compilation import Fitted
from alphagat.training.iteration import gradients_of, make_find_gradients
from alphagat.training.loop import train
from alphagat.training.pretraining import program
from alphagat.training.pretraining.dataset import read_recorded
from alphagat.training.pretraining.positions import Positions
from alphagat.training.pretraining.program import (
    PretrainIterations,
    make_pretrain_program,
    policy_targets,
    recorded_batch,
)
from alphagat.training.resume import find_start
from alphagat.training.setup import make_run, make_setups
from alphagat.training.state import init_state, state_shapes
from tests.evaluation.perfect_games import BOARD, perfect_games
from tests.training.tiny import run_of, tiny_config

TIMES = ("hours", "pretrain/positions_per_s")


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Config:
    """Returns six iterations of eight updates on games of perfect play, evaluated every second iteration."""
    file = tmp_path_factory.mktemp("games") / "games.sgf"
    file.write_text("".join(to_text(record) for record in perfect_games(80, random_plies=1)))
    config = tiny_config()
    config.boards, config.num_iterations = (BOARD,), 6
    config.pretrain.games, config.pretrain.holdout = (str(file),), 0.25
    config.network.width = 16
    config.learner.batch_size, config.learner.replay_ratio, config.learner.learning_rate = 64, 8.0, 0.02
    config.learner.warmup_steps = 4
    config.evaluation.every, config.evaluation.opponents = 2, ("random",)
    return config


@pytest.fixture(scope="module")
def finished(config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    train(config, folder)
    return folder


def without_times(folder) -> list[dict]:
    return [{name: value for name, value in line.items() if name not in TIMES} for line in read_metrics(folder)]


def test_it_fits_the_recorded_moves(config, finished):
    lines = read_metrics(finished)
    assert [line["iteration"] for line in lines] == [*range(1, 7)]
    results = [{each.name: each.value for each in line.get("results", ())} for line in lines]
    assert [("holdout/policy_accuracy" in each, "elo" in each) for each in results] == [
        (False,) * 2,
        (True,) * 2,
    ] * 3
    first, last = results[1], results[-1]
    assert last["holdout/policy_accuracy"] > first["holdout/policy_accuracy"]
    assert last["holdout/policy_loss"] < first["holdout/policy_loss"]
    assert lines[-1]["train/policy_loss"] < lines[0]["train/policy_loss"]
    (recorded,) = read_recorded(make_run(config, sharding.make_mesh(1)), None).boards
    epochs = [number * 8 * 64 / len(recorded.train.game) for number in range(1, 7)]  # 8 updates of 64 positions each
    assert [line["pretrain/epochs"] for line in lines] == pytest.approx(epochs)
    assert all(line["train/skipped"] == 0 for line in lines)


def test_a_missing_grain_is_reported_before_games_are_read(config, monkeypatch):
    monkeypatch.setitem(sys.modules, "grain", None)
    monkeypatch.setattr("alphagat.training.pretraining.dataset.read_sources", lambda *_: pytest.fail("it reads games"))
    with pytest.raises(UserError, match=r"pip install 'alphagat\[pretrain\]'"):
        read_recorded(make_run(config, sharding.make_mesh(1)), None)


def test_the_configured_fraction_is_held_out(config):
    (found,) = read_recorded(make_run(config, sharding.make_mesh(1)), None).boards
    train, held_out = set(found.train.game.tolist()), set(found.held_out.game.tolist())
    assert (len(train), len(held_out)) == (59, 21)  # the last one drawn has an image
    assert not train & held_out


def test_the_seed_draws_the_games_held_out(config):
    seeds = [dataclasses.replace(config, seed=seed) for seed in (0, 1)]
    one, other = (read_recorded(make_run(each, sharding.make_mesh(1)), None).boards[0].held_out for each in seeds)
    assert set(one.game.tolist()) != set(other.game.tolist())


def test_value_targets_have_the_discount_of_the_search(config, tmp_path):
    file = tmp_path / "games.sgf"
    file.write_text("".join(to_text(record) for record in perfect_games(9, random_plies=5)))
    config = dataclasses.replace(config, search=dataclasses.replace(config.search, discount=0.5))
    config.pretrain = dataclasses.replace(config.pretrain, games=(str(file),), holdout=0.0)
    ((train, _),) = read_recorded(make_run(config, sharding.make_mesh(1)), None).boards
    assert {0.25, 0.5, 1} < set(abs(train.value_target).tolist())


def test_resume_is_bit_identical(config, finished, tmp_path, monkeypatch, capsys):
    class Stopped(BaseException):
        """Simulates an abrupt end of the process."""

    save = CheckpointWriter.save

    def stop(self, state, step):
        if step == 4:  # after the evaluation, before the save
            raise Stopped
        save(self, state, step)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointWriter, "save", stop)
        with pytest.raises(Stopped):
            train(config, tmp_path / "run")
    train(config, tmp_path / "run")
    assert "resumed after iteration 3" in capsys.readouterr().out
    states = []
    for folder in (finished, tmp_path / "run"):
        states.append(SavedCheckpoints(folder).read(state_shapes(make_run(config, sharding.make_mesh(1))), 6))
    for one, other in zip(*map(jax.tree.leaves, states), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert without_times(finished) == without_times(tmp_path / "run")


@pytest.fixture
def loaded(monkeypatch) -> list[dict]:
    """Returns the options of the loaders that are made from now on; nothing is compiled or loaded."""
    options = []
    monkeypatch.setattr(program, "make_loader", lambda *_, **each: options.append(each))
    monkeypatch.setattr(PretrainIterations, "_compile", lambda *_: None)
    return options


def start_on_two_boards(iteration: int, rollbacks: int, seed: int = 0) -> PretrainIterations:
    config = tiny_config()
    config.seed = seed
    config.boards = ("hex:2", "hex:3")
    recorded = SimpleNamespace(boards=[SimpleNamespace(train=SimpleNamespace(size=64))] * 2)
    state = SimpleNamespace(iteration=iteration, rollbacks=rollbacks)
    return PretrainIterations(make_run(config, sharding.make_mesh(1)), state, print, recorded)


def test_a_resumed_run_reads_on_where_each_board_was(loaded):
    start_on_two_boards(iteration=5, rollbacks=0)
    assert [(each["first"], each["last"]) for each in loaded] == [(3, 6), (2, 6)]


def test_epochs_are_those_of_the_board_alone(loaded, monkeypatch):
    monkeypatch.setattr(program, "make_loader", lambda *_, **__: iter(range(6)))
    monkeypatch.setattr(PretrainIterations, "_place", lambda *_: None)
    monkeypatch.setattr(PretrainIterations, "_compile", lambda *_: Fitted(lambda *_: (None, None, {}), 1))
    iterations = start_on_two_boards(iteration=0, rollbacks=0)
    state = SimpleNamespace(train=None, key=None, iteration=0, replace=lambda **_: state)
    epochs = [iterations.run(state, number)[1]["epochs"] for number in range(1, 7)]
    assert epochs == [0.5, 0.5, 1, 1, 1.5, 1.5]  # two updates of 16 of the 64 positions


def test_the_order_differs_between_boards_seeds_and_rollbacks(loaded):
    for seed in (0, 1):
        for rollbacks in (0, 1):
            start_on_two_boards(5, rollbacks, seed)
    assert len({each["seed"] for each in loaded}) == 8


def test_its_network_plays_and_initialises_other_runs(config, finished):
    agent = alphagat.load(finished)
    assert (agent.iteration, agent.game.name) == (6, BOARD)
    selfplay = dataclasses.replace(config, pretrain=type(config.pretrain)(), init_from=str(finished), num_iterations=40)
    run = make_run(selfplay, sharding.make_mesh(1))
    start = find_start(run, finished.parent / "nothing")
    chex.assert_trees_all_equal(start.state.train.params, agent.params)
    with pytest.raises(UserError, match=r"trains on recorded games; resume it with alphagat pretrain"):
        check_run_folder(finished, selfplay)


def test_resume_refuses_other_games(config, finished):
    file = Path(*config.pretrain.games)
    text = file.read_text()
    try:
        file.write_text("".join(to_text(record) for record in perfect_games(80, random_plies=1, seed=1)))
        with pytest.raises(UserError, match=r"differ from those at the start of the run in"):
            train(config, finished)
    finally:
        file.write_text(text)


def test_a_run_without_progress_accepts_other_games(config, tmp_path):
    (tmp_path / "games.json").write_text("{}")
    run = make_run(config, sharding.make_mesh(1))
    read_recorded(run, tmp_path)
    (tmp_path / "metrics.jsonl").write_text("{}")
    with pytest.raises(UserError, match=r"differ from those at the start of the run in"):
        read_recorded(run, tmp_path)


def test_resume_refuses_a_damaged_list_of_games(config, finished):
    file = finished / "games.json"
    text = file.read_text()
    try:
        for damaged in ("[" * 200_000, "{", "\xff"):
            file.write_bytes(damaged.encode("latin-1"))
            with pytest.raises(UserError, match=r"games\.json cannot be read: .*; restore it"):
                train(config, finished)
    finally:
        file.write_text(text)


@pytest.mark.parametrize("has_head", [False, True])
def test_gradients_equal_those_of_self_play(has_head):
    """Compares the same positions in the same symmetries."""
    config = tiny_config()
    if has_head:
        config.boards, config.network.ownership_head = ("othello:4",), True
    (setup,) = make_setups(config)
    mesh, plan = sharding.make_mesh(2), setup.plan
    state = init_state(run_of(setup, mesh))
    (board,) = state.boards
    generator = np.random.default_rng(0)
    size, num_actions = (plan.num_groups, plan.group_capacity), setup.game.num_actions
    moves = generator.integers(0, num_actions, size).astype(np.int32)
    empty = board.replay.samples.auxiliary
    samples = board.replay.samples.replace(
        policy_target=jax.nn.one_hot(moves, num_actions),
        policy_weight=jnp.ones(size),
        value_target=jnp.asarray(generator.uniform(-1, 1, size), jnp.float32),
        auxiliary={name: jnp.asarray(generator.integers(-1, 2, x.shape), x.dtype) for name, x in empty.items()},
    )
    board = board.replace(replay=board.replay.replace(samples=samples, size=jnp.full(plan.num_groups, size[1])))
    keys = jax.random.split(jax.random.key(4), plan.num_groups)
    both = jax.vmap(jax.random.split)(keys)
    rows = jax.vmap(lambda key: jax.random.randint(key, (plan.group_batch_size,), 0, size[1]))(both[:, 0])
    groups = np.arange(plan.num_groups)[:, None]
    drawn = jax.tree.map(lambda x: x[groups, rows], samples)
    shape = (plan.num_groups, plan.group_batch_size)
    positions = Positions(
        drawn.state,
        moves[groups, rows],
        drawn.policy_weight,
        drawn.value_target,
        np.ones(shape, np.float32),
        groups + 0 * rows,
        drawn.auxiliary,
        np.ones(shape, np.float32) if has_head else None,
    )
    scale, specs = jnp.float32(1), (sharding.SHARDED, sharding.SHARDED)
    expected = jax.jit(make_find_gradients(setup, mesh))(state.train.params, scale, board, keys)
    find = gradients_of(setup, mesh, functools.partial(recorded_batch, setup), specs)
    found = jax.jit(find)(state.train.params, scale, positions, both[:, 1])
    chex.assert_trees_all_close(found, expected, rtol=1e-5, atol=1e-7)
    assert float(found[1]["value_loss"]) > 0
    is_known, is_held = generator.random((2, *shape)) < 0.5
    masked = positions.replace(value_mask=is_known.astype(np.float32))
    if has_head:
        masked = masked.replace(auxiliary_mask=is_held.astype(np.float32))
    known = jax.jit(find)(state.train.params, scale, masked, both[:, 1])
    for turned in (True, False):
        # Turned targets matter at known places only.
        auxiliary = {
            name: np.where((is_held != turned).reshape(*shape, *[1] * (x.ndim - 2)), -x, x)
            for name, x in masked.auxiliary.items()
        }
        values = np.where(is_known != turned, -masked.value_target, masked.value_target)
        changed = masked.replace(value_target=values, auxiliary=auxiliary)
        _, parts = jax.jit(find)(state.train.params, scale, changed, both[:, 1])
        assert (float(parts["value_loss"]) == float(known[1]["value_loss"])) == turned
        if has_head:
            assert (float(parts["ownership_loss"]) == float(known[1]["ownership_loss"])) == turned
    if has_head:
        unknown = positions.replace(auxiliary_mask=np.zeros(shape, np.float32))
        _, parts = jax.jit(find)(state.train.params, scale, unknown, both[:, 1])
        assert float(parts["ownership_loss"]) == 0 < float(found[1]["ownership_loss"])


def test_every_update_uses_its_own_batch():
    """Changing a move anywhere in a block changes the parameters."""
    config = tiny_config()
    config.pretrain.games, config.learner.replay_ratio = ("x.sgf",), 0.75
    (setup,) = make_setups(config)
    plan, mesh = setup.plan, sharding.make_mesh(2)
    state = init_state(run_of(setup, mesh))
    assert state.boards == ()
    shape = (plan.updates_per_iteration, plan.num_groups, plan.group_batch_size)
    assert shape[0] == 3
    first = first_state(setup.game)
    ones = np.ones(shape, np.float32)
    block = Positions(
        state=jax.tree.map(lambda x: jnp.broadcast_to(x, (*shape, *x.shape)), first),
        policy=np.zeros(shape, np.int32),
        policy_weight=ones,
        value_target=ones,
        value_mask=ones,
        game=np.zeros(shape, np.int32),
    )
    learn = make_pretrain_program(setup, mesh)
    ends = []
    for place in (None, (0, 0, 0), (1, 7, 1), (2, 3, 0)):
        policy = block.policy.copy()
        if place:
            policy[place] = 1
        train, iteration = jax.tree.map(jnp.copy, (state.train, state.iteration))
        train, _, metrics = learn(train, block.replace(policy=policy), state.key, iteration)
        assert (int(train.step), float(metrics["train/skipped"])) == (3, 0)
        ends.append(np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(train.params)]))
    assert len({end.tobytes() for end in ends}) == 4


def test_moves_become_one_hot_policies():
    assert policy_targets(jnp.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert policy_targets(jnp.full((1, 2), 0.5), 2).tolist() == [[0.5, 0.5]]
