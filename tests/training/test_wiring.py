"""Every field of the config has an effect: short runs with all fields off their defaults equal a slow reference."""

import ast
import dataclasses
import math
from pathlib import Path
from typing import Any

import chex
import jax
import numpy as np
import pytest

from alphagat.agents import weight_files
from alphagat.agents.agent import load
from alphagat.agents.build import make_configured_network, param_shapes
from alphagat.config import Config
from alphagat.config_fields import fields
from alphagat.config_validation import from_dict
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import distinct_openings
from alphagat.games import make_game
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.resnet import ResidualNetwork
from alphagat.runs.checkpoints import Checkpoints, list_steps
from alphagat.runs.metrics import read_metrics
from alphagat.runtime import sharding
from alphagat.training import evaluators, iterations
from alphagat.training.audit import Auditor
from alphagat.training.board_schedule import board_schedule
from alphagat.training.iteration import make_iteration, run_iteration
from alphagat.training.loop import train
from alphagat.training.setup import boards_by_iteration, make_configured_mesh, make_run
from alphagat.training.state import RunState, init_state, state_shapes
from tests.training.reference_run import ReferenceRun

TESTS = Path(__file__).parents[1]
SIZES = {"width": 8, "num_blocks": 1, "num_heads": 2, "mlp_ratio": 1}

# Two games per device and group would do, but then too few games end. Games are truncated after 12 plies.
GUMBEL = {
    "boards": ["othello:4"],
    "seed": 11,
    "num_iterations": 7,
    "mesh": {"data": 2},
    "network": {**SIZES, "ownership_head": True},
    "search": {
        "num_simulations": 6,
        "max_num_considered_actions": 3,
        "value_scale": 0.3,
        "discount": 0.9,
        "rescale_values": False,
    },
    "selfplay": {
        "num_games": 9,
        "num_groups": 2,
        "plies_per_iteration": 6,
        "opening_plies": 3,
        "full_search_fraction": 0.6,
        "fast_simulations": 3,
        "surprise_fraction": 0.4,
        "max_plies": 12,
        "value_lambda": 0.7,
        "audit_every": 3,
    },
    "replay": {"capacity": 100, "min_size": 50},
    "learner": {
        "batch_size": 8,
        "replay_ratio": 0.5,
        "learning_rate": 0.03,
        "warmup_steps": 2,
        "final_learning_rate_fraction": 0.3,
        "weight_decay": 0.1,
        "clip_norm": 0.5,
        "value_weight": 0.6,
        "ownership_weight": 0.9,
        "ema_decay": 0.7,
    },
    "evaluation": {
        "every": 3,
        "num_games": 6,
        "num_simulations": 5,
        "value_scale": 0.6,
        "opponents": ["previous", "random"],
    },
    "checkpoint": {"every": 2, "keep": 1, "keep_every": 4},
}
# The fields that exclude those above.
PUCT = {
    "boards": ["hex:3"],
    "num_iterations": 4,
    "network": SIZES,
    "search": {
        "algorithm": "puct",
        "num_simulations": 4,
        "dirichlet_alpha": 1.5,
        "dirichlet_fraction": 0.6,
        "temperature": 0.5,
        "temperature_plies": 3,
    },
    "selfplay": {"num_games": 8, "num_groups": 2, "plies_per_iteration": 4, "horizon": 3},
    "replay": {"capacity": 64, "min_size": 32},
    "learner": {"batch_size": 8, "replay_ratio": 0.5, "optimizer": "sgd", "warmup_steps": 0},
}


@dataclasses.dataclass
class Finished:
    """A run that `train` has finished, and what it did.

    Attributes:
      states: before each iteration and at the end.
      num_devices: over which the games were split.
      matches: the arguments of each match: player, opponent, openings and key.
      audited: the iterations whose self-play was audited.
    """

    folder: Path
    config: Config
    weights: Any
    states: list[RunState]
    num_devices: int = 0
    matches: list[tuple] = dataclasses.field(default_factory=list)
    audited: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class RecordedPlayer:
    name: str
    search: Any
    params: Any


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Finished:
    """Trains with `GUMBEL`, from weights in a file; matches are recorded and not played."""
    folder = tmp_path_factory.mktemp("wiring")
    config = from_dict(GUMBEL)
    weights = random_weights(config)
    weight_files.write(folder / "first.safetensors", weights, config, 1)
    config.init_from = str(folder / "first.safetensors")
    found = Finished(folder / "run", config, weights, [])
    iterate, check = iterations.run_iteration, Auditor.check

    def record_state(program: Any, state: RunState, board: int) -> tuple:
        found.num_devices = len(state.boards[0].groups.sharding.device_set)
        found.states.append(jax.device_get(state))
        return iterate(program, state, board)

    def record_match(game: Any, player: Any, opponent: Any, openings: Any, key: jax.Array, mesh: Any) -> MatchResult:
        found.matches.append((jax.device_get(player), jax.device_get(opponent), openings, jax.random.key_data(key)))
        shape = (2, config.evaluation.num_games // 2)
        return MatchResult(np.ones(shape), np.ones(shape, int), np.zeros((*shape, 1), int), np.full(shape, ""))

    def record_audit(auditor: Auditor, audit: Any) -> None:
        found.audited.append(int(audit.iteration.addressable_data(0)[0]) + 1)
        check(auditor, audit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterations, "run_iteration", record_state)
        patch.setattr(evaluators, "play_match", record_match)
        patch.setattr(evaluators, "search_player", RecordedPlayer)
        patch.setattr(Auditor, "check", record_audit)
        train(config, found.folder)
    with Checkpoints(found.folder, read_only=True) as checkpoints:
        shapes = state_shapes(make_run(config, make_configured_mesh(config)))
        found.states.append(checkpoints.read(shapes, config.num_iterations))
    return found


def random_weights(config: Config) -> Any:
    """Draws parameters that make priors and values far from uniform."""
    game, generator = make_game(config.boards[0]), np.random.default_rng(0)
    shapes = param_shapes(game, make_configured_network(config, game))
    return jax.tree.map(lambda leaf: generator.normal(0, 0.5, leaf.shape).astype(np.float32), shapes)


@pytest.fixture(scope="module")
def reference(finished) -> tuple[ReferenceRun, list[RunState], list[dict]]:
    """Returns the reference of the same run, its states before each iteration and at the end, and its metrics."""
    config, run = finished.config, ReferenceRun(finished.config, finished.weights)
    opt_state = finished.states[0].train.opt_state
    states, metrics = [run.state(opt_state)], []
    for iteration in range(1, config.num_iterations + 1):
        metrics.append(run.iterate())
        if iteration % config.evaluation.every == 0 or iteration == config.num_iterations:
            run.evaluate()
        states.append(run.state(opt_state))
    return run, states, metrics


def assert_equal_states(found: RunState, expected: RunState) -> None:
    """Compares every leaf, except a bias of all logits, which has no effect and whose gradient is only rounding."""
    leaves = zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected), strict=True)
    for (path, leaf), other in leaves:
        name = jax.tree_util.keystr(path)
        assert (leaf.shape, leaf.dtype) == (other.shape, other.dtype), name
        if not name.endswith("['policy']['logit']['bias']"):
            np.testing.assert_allclose(
                leaf, other, rtol=1e-4, atol=2e-5, err_msg=f"iteration {found.iteration}: {name}"
            )


def test_a_run_equals_the_reference(finished, reference):
    _, states, _ = reference
    assert len(finished.states) == finished.config.num_iterations + 1
    for found, expected in zip(finished.states, states, strict=True):
        assert_equal_states(found, expected)


def test_the_run_is_a_hard_case(finished):
    """Games end by the rules and by truncation; the ring wraps; most parameters change; weights differ."""
    last = finished.states[-1]
    board = last.boards[0]
    waiting = board.games.waiting
    assert waiting.truncated.any()
    assert (waiting.ended & ~waiting.truncated).any()
    assert len(np.unique(waiting.policy_weight)) > 10
    assert (board.replay.cursor < board.replay.size).all()
    assert int(last.train.step) > 5
    assert {0, 1, 2, 3} <= set(np.concatenate([state.boards[0].games.plies.ravel() for state in finished.states]))


def test_the_metrics_equal_the_reference(finished, reference):
    _, _, metrics = reference
    for line, expected in zip(read_metrics(finished.folder), metrics, strict=True):
        games, simulations = expected.pop("games"), expected.pop("simulations")
        for name, value in expected.items():
            found = math.nan if line[name] is None else line[name]
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-6, err_msg=name)
        if games:
            per_game = line["selfplay/simulations_per_s"] / line["selfplay/games_per_s"]
            np.testing.assert_allclose(per_game, simulations / games, rtol=1e-4)
        known = expected.keys() | {"iteration", "board", "hours", "num_games", "results"}
        known |= {"selfplay/games_per_s", "selfplay/simulations_per_s"}
        assert {name for name in line if line[name] is not None} <= known


def test_updates_groups_and_iterations_draw_their_own_numbers(finished, reference):
    run, _, _ = reference
    rows = [tuple(group) for update in run.drawn for group in update]
    assert len(rows) > 10
    assert len(set(rows)) == len(rows)
    groups = finished.states[-1].boards[0].replay.samples.policy_target
    assert not np.array_equal(groups[0], groups[1])


def test_other_weights_start_the_average_and_the_previous_player(finished):
    first = finished.states[0]
    for params in (first.train.params, first.train.average, first.previous_params):
        chex.assert_trees_all_equal(params, finished.weights)


def test_matches_are_played_by_the_average_as_configured(finished, reference):
    run, states, _ = reference
    config, options = finished.config, finished.config.evaluation
    expected = [(iteration, number) for iteration in (3, 6, 7) for number in range(2)]
    openings = distinct_openings(make_game(config.boards[0]), options.num_games // 2, config.seed)
    before = finished.weights
    for (iteration, number), match in zip(expected, finished.matches, strict=True):
        player, opponent, positions, key = match
        average = finished.states[iteration].train.average
        chex.assert_trees_all_equal(player.params, average)
        assert opponent.name == options.opponents[number]
        if opponent.name == "previous":
            chex.assert_trees_all_equal(opponent.params, before)
            before = average
        chex.assert_trees_all_equal(positions, openings)
        folded = jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), iteration), number)
        np.testing.assert_array_equal(key, jax.random.key_data(folded))
    assert [line.get("num_games") for line in read_metrics(finished.folder)] == [None, None, 6, None, None, 6, 6]
    positions = jax.tree.map(lambda x: x[0, 0], finished.states[-1].boards[0].games.waiting.state)
    arguments = player.params, jax.random.key(0), positions, np.zeros(len(positions.terminated), np.int32)
    search = run.make_search(options.num_simulations, options.value_scale, explore=False)
    found, wanted = jax.jit(player.search)(*arguments), search(*arguments)
    np.testing.assert_allclose(found.policy_target, wanted.policy_target, atol=1e-5)
    np.testing.assert_array_equal(found.root.visits, wanted.root.visits)


def test_checkpoints_are_kept_as_configured_and_hold_the_average_for_players(finished):
    assert list_steps(finished.folder) == [4, 7]
    train_state = finished.states[-1].train
    chex.assert_trees_all_equal(load(finished.folder).params, train_state.average)
    assert not np.array_equal(*(x["params"]["features"]["kernel"] for x in (train_state.average, train_state.params)))


def test_audits_are_as_frequent_as_configured(finished):
    assert finished.audited == [3, 6]


def test_games_are_split_over_the_configured_devices(finished):
    assert finished.num_devices == 2


def test_a_run_with_puct_equals_the_reference():
    config = from_dict(PUCT)
    run = make_run(config, sharding.make_mesh(1))
    state, program, reference = init_state(run), make_iteration(run.boards[0], run.mesh), ReferenceRun(config)
    for _ in range(config.num_iterations):
        assert_equal_states(jax.device_get(state), reference.state(state.train.opt_state))
        state, _, _ = run_iteration(program, state)
        reference.iterate()
    assert_equal_states(jax.device_get(state), reference.state(state.train.opt_state))
    assert int(state.train.step) > 5


def test_weights_order_the_boards():
    config = Config(boards=("hex:2", "hex:3"), num_iterations=12)
    config.board_weights, config.final_board_weights = (3.0, 1.0), (0.0, 1.0)
    assert boards_by_iteration(config) == board_schedule(12, 2, (3.0, 1.0), (0.0, 1.0))
    config.selfplay.plies_per_iteration, config.replay.min_size = 9, 512
    run = make_run(config, sharding.make_mesh(1))
    assert run.order == boards_by_iteration(config)
    first, second = (setup.plan.total_updates for setup in run.boards)
    counts = [run.order.count(number) - setup.plan.first_update_iteration for number, setup in enumerate(run.boards)]
    assert first * counts[1] == second * counts[0] > 0


def test_the_mesh_has_the_configured_axes():
    config = Config()
    config.mesh.data, config.mesh.model, config.mesh.stage = 1, 2, 3
    assert dict(make_configured_mesh(config).shape) == {"data": 1, "stage": 3, "model": 2}


def test_the_network_has_the_configured_fields():
    config = Config()
    options = {"backend": "jraph", "width": 12, "num_blocks": 2, "num_heads": 3, "mlp_ratio": 5, "remat": True}
    for name, value in options.items():
        setattr(config.network, name, value)
    config.network.precision = "bfloat16"
    network = make_configured_network(config, make_game("hex:3"))
    assert isinstance(network, GraphAttentionNetwork)
    assert {name: getattr(network, name) for name in options} == options
    assert network.dtype == jax.numpy.bfloat16
    config.network.name = "resnet"
    assert isinstance(make_configured_network(config, make_game("hex:3")), ResidualNetwork)


HERE = "training/test_wiring.py"
RUN, PUCT_RUN = f"{HERE}::test_a_run_equals_the_reference", f"{HERE}::test_a_run_with_puct_equals_the_reference"
MATCHES = f"{HERE}::test_matches_are_played_by_the_average_as_configured"
NETWORK = f"{HERE}::test_the_network_has_the_configured_fields"
KEPT = f"{HERE}::test_checkpoints_are_kept_as_configured_and_hold_the_average_for_players"
MESH = f"{HERE}::test_the_mesh_has_the_configured_axes"
ORDER = f"{HERE}::test_weights_order_the_boards"
RECORDED = "training/pretraining/test_program.py::test_it_fits_the_recorded_moves"
# The test that fails if the program ignores a field.
NOTICED_BY = {
    "boards": RUN,
    "board_weights": ORDER,
    "final_board_weights": ORDER,
    "init_from": RUN,
    "seed": RUN,
    "num_iterations": RUN,
    "mesh.data": f"{HERE}::test_games_are_split_over_the_configured_devices",
    "mesh.model": MESH,
    "mesh.stage": MESH,
    "mesh.memory_gb": "training/test_compilation.py::test_fewest_micro_batches_that_fit",
    "mesh.fsdp": "training/test_parallel.py::test_parameters_are_sharded",
    "mesh.actors": "training/test_actor_learner.py::test_arrays_reside_on_the_devices_that_use_them",
    "network.name": NETWORK,
    "network.backend": NETWORK,
    "network.width": RUN,
    "network.num_blocks": RUN,
    "network.num_heads": RUN,
    "network.mlp_ratio": RUN,
    "network.ownership_head": RUN,
    "network.precision": NETWORK,
    "network.remat": NETWORK,
    "search.algorithm": PUCT_RUN,
    "search.num_simulations": RUN,
    "search.max_num_considered_actions": RUN,
    "search.value_scale": RUN,
    "search.discount": RUN,
    "search.rescale_values": RUN,
    "search.dirichlet_alpha": PUCT_RUN,
    "search.dirichlet_fraction": PUCT_RUN,
    "search.temperature": PUCT_RUN,
    "search.temperature_plies": PUCT_RUN,
    "selfplay.num_games": RUN,
    "selfplay.num_groups": RUN,
    "selfplay.plies_per_iteration": RUN,
    "selfplay.opening_plies": RUN,
    "selfplay.full_search_fraction": RUN,
    "selfplay.fast_simulations": RUN,
    "selfplay.surprise_fraction": RUN,
    "selfplay.max_plies": RUN,
    "selfplay.value_lambda": RUN,
    "selfplay.audit_every": f"{HERE}::test_audits_are_as_frequent_as_configured",
    "selfplay.horizon": PUCT_RUN,
    "replay.capacity": RUN,
    "replay.min_size": RUN,
    "pretrain.games": RECORDED,
    "pretrain.holdout": RECORDED,
    "learner.batch_size": RUN,
    "learner.replay_ratio": RUN,
    "learner.num_micro_batches": "training/test_compilation.py::test_micro_batches_save_memory",
    "learner.optimizer": PUCT_RUN,
    "learner.learning_rate": RUN,
    "learner.warmup_steps": RUN,
    "learner.final_learning_rate_fraction": RUN,
    "learner.weight_decay": RUN,
    "learner.clip_norm": RUN,
    "learner.value_weight": RUN,
    "learner.ownership_weight": RUN,
    "learner.actor_sync_every": (
        "training/test_actor_learner.py::test_parameters_are_synchronized_and_their_age_is_reported"
    ),
    "learner.max_skipped": "training/test_loop.py::test_nonfinite_updates_roll_the_run_back",
    "learner.ema_decay": RUN,
    "evaluation.every": MATCHES,
    "evaluation.num_games": MATCHES,
    "evaluation.num_simulations": MATCHES,
    "evaluation.value_scale": MATCHES,
    "evaluation.oracle_positions": "training/test_evaluators.py::test_the_network_is_compared_with_perfect_play",
    "evaluation.opponents": MATCHES,
    "checkpoint.every": KEPT,
    "checkpoint.keep": KEPT,
    "checkpoint.keep_every": KEPT,
}


def test_every_field_has_a_test_that_notices_it():
    assert NOTICED_BY.keys() == {field.path for field in fields(Config())}
    for place in set(NOTICED_BY.values()):
        file, _, name = place.partition("::")
        functions = [
            node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)
        ]
        assert name in functions, place


def test_the_runs_change_every_field_that_they_notice(finished):
    configs = {RUN: finished.config, MATCHES: finished.config, KEPT: finished.config, PUCT_RUN: from_dict(PUCT)}
    defaults = {field.path: field.value for field in fields(Config())}
    values = {test: {field.path: field.value for field in fields(config)} for test, config in configs.items()}
    for path, test in NOTICED_BY.items():
        assert test not in values or values[test][path] != defaults[path], path
