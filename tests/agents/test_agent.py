"""An agent from a run plays legal moves with the network of the run; errors are one line."""

import itertools
import shutil
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alphagat
from alphagat.agents.agent import Agent, load
from alphagat.agents.build import make_configured_search
from alphagat.cli import evaluate
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.evaluation.openings import random_positions
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import open_run_folder
from alphagat.runtime import sharding
from alphagat.search import Evaluation
from alphagat.training.resume import load_weights
from alphagat.training.setup import make_setups
from alphagat.training.state import RunState, init_state
from tests.search.evaluators import uniform_evaluator
from tests.training.tiny import run_of, tiny_config, tiny_run, tiny_setup


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, RunState]:
    """Returns a run's folder with checkpoints 1 and 2, whose parameters differ, and the state of the second."""
    folder = open_run_folder(tmp_path_factory.mktemp("agent") / "run", tiny_config())
    first = init_state(tiny_run())
    params = jax.tree.map(lambda x: x + 0.1, first.train.params)
    second = first.replace(train=first.train.replace(params=params))
    with CheckpointWriter(folder) as writer:
        writer.save(first, 1)
        writer.save(second, 2)
    return folder, second


def test_loads_the_latest_or_the_requested_checkpoint(run):
    folder, second = run
    assert alphagat.load is load
    agent = load(str(folder))
    assert (agent.iteration, agent.game.name, agent.config) == (2, "hex:2", tiny_config())
    chex.assert_trees_all_equal(agent.params, second.train.params)
    earlier = load(folder, 1)
    assert earlier.iteration == 1
    assert not np.array_equal(jax.tree.leaves(earlier.params)[0], jax.tree.leaves(agent.params)[0])


def test_agents_and_players_are_printed_in_one_line(run):
    folder, _ = run
    agent = load(folder)
    assert repr(agent) == f"Agent(game=make_game('{agent.game.name}'), iteration={agent.iteration})"
    assert repr(agent.player(4)) == f"Player(name='iteration {agent.iteration}, 4 simulations')"


def test_empty_names_are_refused(run):
    with pytest.raises(UserError, match=r"^network '': the name is empty; use a run folder"):
        load("")
    for source in (run[0], "hex", "shipped"):
        with pytest.raises(UserError, match=r"^board '': the name is empty; name one such as hex:5, or leave it out$"):
            load(source, board="")


@pytest.mark.parametrize("number", [0, -1, 65_537, 1.5, "64", True])
def test_an_impossible_number_of_simulations_is_refused(run, number):
    agent = load(run[0])
    for build in (agent.player, agent.search):
        with pytest.raises(
            UserError, match=r"^num_simulations=.*: it must be an integer, at least 1 and at most 65536$"
        ):
            build(number)


def test_a_player_has_the_simulations_of_the_evaluations_of_its_run():
    config = Config(boards=("tic_tac_toe",))
    config.search.num_simulations, config.evaluation.num_simulations = 7, 5
    agent = Agent(make_game("tic_tac_toe"), config, 3, None, uniform_evaluator)
    assert agent.player().name == "iteration 3, 5 simulations"


def test_an_integer_of_numpy_is_a_number_of_simulations(run):
    assert load(run[0]).player(np.int64(3)).name == "iteration 2, 3 simulations"


def test_evaluations_average_over_as_many_symmetries_as_asked(run):
    plain, averaging = load(run[0]), load(run[0], symmetries=4)
    assert averaging.player(3).name == "iteration 2, 3 simulations, 4 symmetries"
    evaluation = averaging.evaluate(first_state(plain.game))  # the empty board of Hex 2x2
    corner, other_corner, acute, other_acute = evaluation.prior_logits[np.array([1, 2, 0, 3])]
    assert corner == pytest.approx(other_corner, abs=1e-5)
    assert acute == pytest.approx(other_acute, abs=1e-5)
    logits = plain.evaluate(first_state(plain.game)).prior_logits
    assert logits[0] != pytest.approx(logits[3], abs=1e-5)
    assert evaluation.prior_logits[0] == pytest.approx((logits[0] + logits[3]) / 2, abs=1e-5)


@pytest.mark.parametrize("number", [0, 1.5, "2", 257])
def test_an_impossible_number_of_symmetries_is_refused(run, number):
    with pytest.raises(UserError, match=r"^symmetries=.*: it must be an integer, at least 1 and at most 256$"):
        load(run[0], symmetries=number)


def test_more_symmetries_than_the_board_has_are_refused():
    for board, most in (("hex:3", 4), ("chess", 1)):
        message = f"^symmetries={most + 1}: it must be at most {most}, the number of symmetries of {board}$"
        with pytest.raises(UserError, match=message):
            load("shipped", board=board, symmetries=most + 1)


def test_moves_are_legal_and_deterministic(run):
    agent = load(run[0])
    player = agent.player(3)
    assert player.name == "iteration 2, 3 simulations"
    assert agent.player().name == "iteration 2, 2 simulations"
    states = random_positions(agent.game, 16, 0, 2, seed=0)
    act = jax.jit(player.act)
    actions = act(player.params, jax.random.key(0), states)
    assert actions.shape == (16,)
    assert jnp.take_along_axis(states.legal_action_mask, actions[:, None], axis=1).all()
    np.testing.assert_array_equal(act(player.params, jax.random.key(1), states), actions)


def test_evaluates_a_single_state(run):
    folder, second = run
    agent = load(folder)
    state = first_state(agent.game)
    found = agent.evaluate(state)
    assert isinstance(found.prior_logits, np.ndarray)
    assert found.prior_logits.shape == (4,)
    assert found.value.shape == ()
    logits, value = jax.jit(tiny_setup().network.apply)(second.train.params, agent.game.observe(state)[None])
    np.testing.assert_allclose(found.prior_logits, logits[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.value, value[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(
        UserError, match=r"^state: it is a batch of shape \[1\]; pass one state, or call agent.evaluator"
    ):
        agent.evaluate(jax.tree.map(lambda x: x[None], state))


def test_weights_initialise_runs_with_and_without_an_ownership_head(tmp_path):
    """Shared parameters are kept; a new head is initialised as in a new run."""
    saved, setups = {}, {}
    for name in ("with", "without"):
        config = tiny_config()
        config.boards, config.network.ownership_head, config.mesh.data = ("othello:4",), name == "with", 1
        (setups[name],) = make_setups(config)
        state = init_state(run_of(setups[name], sharding.make_mesh(1)))
        with CheckpointWriter(open_run_folder(tmp_path / name, config)) as writer:
            writer.save(state, 1)
        saved[name] = state.train.params["params"]
    assert saved["with"].keys() - saved["without"].keys() == {"ownership"}
    for start, then in itertools.product(saved, saved):
        found = load_weights(str(tmp_path / start), setups[then])["params"]
        assert found.keys() == saved[then].keys()
        for part in found.keys() & saved[start].keys():
            jax.tree.map(np.testing.assert_array_equal, found[part], saved[start][part])
    drawn = []
    for seed in (0, 1):
        setups["with"].config.seed = seed
        drawn.append(load_weights(str(tmp_path / "without"), setups["with"])["params"]["ownership"])
        assert jax.tree.map(jnp.shape, drawn[-1]) == jax.tree.map(jnp.shape, saved["with"]["ownership"])
    assert any((one != other).any() for one, other in zip(*map(jax.tree.leaves, drawn)))


def test_evaluation_value_scale_applies_unless_the_search_explores():
    """The prior strongly favours a move that does not win; the search finds a winning one."""
    game, config = make_game("tic_tac_toe"), Config(boards=("tic_tac_toe",))
    state, step = first_state(game), jax.jit(game.step)
    for action in (0, 3, 1, 4):
        state = step(state, jnp.int32(action), jax.random.key(0))
    winning, expected = 2, 8

    def evaluate(params, states):
        return Evaluation(10.0 * jnp.eye(9)[expected][None], jnp.zeros(1))

    def policy_target(explore: bool) -> jax.Array:
        search = make_configured_search(game, evaluate, config, explore=explore, num_simulations=32)
        states = jax.tree.map(lambda x: x[None], state)
        return jax.jit(search)(None, jax.random.key(0), states, jnp.zeros(1)).policy_target[0]

    config.search.value_scale, config.evaluation.value_scale = 1e-6, 1.0
    assert policy_target(explore=False).argmax() == winning
    assert policy_target(explore=True).argmax() == expected
    config.search.value_scale, config.evaluation.value_scale = 1.0, 1e-6
    assert policy_target(explore=False).argmax() == expected
    assert policy_target(explore=True).argmax() == winning


@pytest.fixture(params=["no folder", "no config", "no checkpoint", "no such checkpoint", "damaged"])
def broken(request, run, tmp_path) -> tuple[list[str], str]:
    """Returns flags of `evaluate` and the expected text of the error."""
    folder = tmp_path / "run"
    if request.param != "no folder":
        shutil.copytree(run[0], folder)
    if request.param == "no folder":
        return [str(folder)], "config.json does not exist"
    if request.param == "no config":
        (folder / "config.json").unlink()
        return [str(folder)], "holds no run"
    if request.param == "no checkpoint":
        shutil.rmtree(folder / "checkpoints")
        return [str(folder)], "has no complete checkpoint yet"
    if request.param == "no such checkpoint":
        return [str(folder), "--iteration=7"], "has no checkpoint of iteration 7, only of 1, 2"
    (folder / "checkpoints" / "2" / "params" / "manifest.ocdbt").write_bytes(b"")
    return [str(folder)], "checkpoints/2 is damaged: params/manifest.ocdbt has changed since it was written"


def test_missing_or_broken_files_give_one_line(broken, capsys):
    (folder, *more), message = broken
    iteration = int(more[0].partition("=")[2]) if more else None
    with pytest.raises(UserError) as refusal:
        load(folder, iteration)
    assert message in str(refusal.value)
    assert evaluate.run(["--workdir", folder, *more]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith(f"error: {str(refusal.value)[:50]}")
    assert message in printed.err
