"""Short runs with all fields off their defaults equal a slow reference; `test_every_field` lists the fields."""

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
from alphagat.config_validation import from_dict
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import distinct_openings
from alphagat.games import make_game
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.resnet import ResidualNetwork
from alphagat.runs.metrics import read_metrics
from alphagat.runs.saved_checkpoints import SavedCheckpoints, list_steps
from alphagat.runtime import sharding
from alphagat.training import evaluation, iterations, setup
from alphagat.training import iteration as iteration_module
from alphagat.training.audit import Auditor
from alphagat.training.board_schedule import board_schedule
from alphagat.training.iteration import EVALUATIONS, make_iteration, run_iteration
from alphagat.training.loop import train
from alphagat.training.setup import boards_by_iteration, make_configured_mesh, make_run, make_setups
from alphagat.training.state import RunState, init_state, state_shapes
from tests.training.reference.reference_run import ReferenceRun
from tests.training.reference.wiring_configs import CHANCE, GUMBEL, PUCT


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
        return MatchResult(np.ones(shape), np.ones(shape, int), np.full((*shape, 1), -1), np.full(shape, ""))

    def record_audit(auditor: Auditor, audit: Any) -> None:
        found.audited.append(int(audit.iteration.addressable_data(0)[0]) + 1)
        check(auditor, audit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterations, "run_iteration", record_state)
        patch.setattr(evaluation, "play_match", record_match)
        patch.setattr(evaluation, "search_player", RecordedPlayer)
        patch.setattr(Auditor, "check", record_audit)
        train(config, found.folder)
    shapes = state_shapes(make_run(config, make_configured_mesh(config)))
    found.states.append(SavedCheckpoints(found.folder).read(shapes, config.num_iterations))
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
    """Games end by the rules and by truncation, openings have all lengths, and the ring wraps."""
    last = finished.states[-1]
    board, waiting = last.boards[0], last.boards[0].games.waiting
    assert waiting.truncated.any()
    assert (waiting.ended & ~waiting.truncated).any()
    assert len(np.unique(waiting.policy_weight)) > 10
    assert (board.replay.cursor < board.replay.size).all()
    assert int(last.train.step) > 5
    assert {0, 1, 2, 3} <= set(np.concatenate([state.boards[0].games.plies.ravel() for state in finished.states]))


def test_the_metrics_equal_the_reference(finished, reference):
    _, _, metrics = reference
    counts, speeds = {"games", "simulations"}, {"selfplay/games_per_s", "selfplay/simulations_per_s"}
    for line, expected in zip(read_metrics(finished.folder), metrics, strict=True):
        for name in expected.keys() - counts:
            found = math.nan if line[name] is None else line[name]
            np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-6, err_msg=name)
        if expected["games"]:
            per_game = line["selfplay/simulations_per_s"] / line["selfplay/games_per_s"]
            np.testing.assert_allclose(per_game, expected["simulations"] / expected["games"], rtol=1e-4)
        known = expected.keys() | speeds | {"iteration", "board", "hours", "num_games", "previous_iteration", "results"}
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
    run, _, _ = reference
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
        evaluations = jax.random.fold_in(jax.random.key(config.seed), EVALUATIONS)
        *_, matches_key = jax.random.split(jax.random.fold_in(evaluations, iteration), 3)
        np.testing.assert_array_equal(key, jax.random.key_data(jax.random.fold_in(matches_key, number)))
    lines = read_metrics(finished.folder)
    assert [line.get("num_games") for line in lines] == [None, None, 6, None, None, 6, 6]
    assert [line.get("previous_iteration") for line in lines] == [None, None, 0, None, None, 3, 6]
    positions = jax.tree.map(lambda x: x[0, 0], finished.states[-1].boards[0].games.waiting.state)
    arguments = player.params, jax.random.key(0), positions, np.zeros(len(positions.terminated), np.int32)
    search = run.make_search(options.num_simulations, options.value_scale, explore=False)
    found, wanted = jax.jit(player.search)(*arguments), search(*arguments)
    np.testing.assert_allclose(found.policy_target, wanted.policy_target, atol=1e-5)
    np.testing.assert_array_equal(found.root.visits, wanted.root.visits)


def test_checkpoints_are_kept_as_configured_and_hold_the_average_for_players(finished):
    assert list_steps(finished.folder) == [3, 6, 7]  # 3 is no multiple of `checkpoint.every`
    train_state = finished.states[-1].train
    chex.assert_trees_all_equal(load(finished.folder).params, train_state.average)
    assert not np.array_equal(*(x["params"]["features"]["kernel"] for x in (train_state.average, train_state.params)))


def test_audits_are_as_frequent_as_configured(finished):
    assert finished.audited == [3, 6]


def test_games_are_split_over_the_configured_devices(finished):
    assert finished.num_devices == 2


@pytest.mark.parametrize("values", [PUCT, CHANCE], ids=["puct", "chance"])
def test_a_shorter_run_equals_the_reference(values: dict):
    config = from_dict(values)
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
    first, second = (each.plan.total_updates for each in run.boards)
    counts = [run.order.count(number) - each.plan.first_update_iteration for number, each in enumerate(run.boards)]
    assert first * counts[1] == second * counts[0] > 0


def test_the_mesh_has_the_configured_axes():
    config = Config()
    config.mesh.data, config.mesh.model, config.mesh.stage = 1, 2, 3
    assert dict(make_configured_mesh(config).shape) == {"data": 1, "stage": 3, "model": 2}


@pytest.mark.parametrize("axis", ["", "model", "stage"])
def test_gradients_stay_apart_if_devices_share_the_network(axis, monkeypatch):
    given = []
    monkeypatch.setattr(setup, "make_optimizer", lambda **options: given.append(options["as_one_vector"]))
    monkeypatch.setattr(setup, "pipeline", lambda *_: None)
    monkeypatch.setattr(iteration_module, "mean_gradients", lambda *_, as_one_vector, **__: given.append(as_one_vector))
    monkeypatch.setattr(iteration_module, "make_update", lambda *_, as_one_vector, **__: given.append(as_one_vector))
    monkeypatch.setattr(iteration_module.sharding, "over_data", lambda function, *_: function)
    config = Config()
    if axis:
        setattr(config.mesh, axis, 2)
    (each,) = make_setups(config)
    mesh = sharding.make_mesh(1)
    iteration_module.make_updates(each, mesh, None)
    iteration_module.gradients_of(each, mesh, lambda: None, ())(None, None)
    assert given == [not axis] * 3


def test_stages_cut_the_network(monkeypatch):
    monkeypatch.setattr(setup, "pipeline", lambda config, game, network: f"{config.mesh.stage} stages")
    config = Config()
    config.mesh.stage = 2
    assert make_setups(config)[0].network == "2 stages"
    assert make_configured_mesh(config).shape["stage"] == 2


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
