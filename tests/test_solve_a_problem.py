"""The problems of the guide keep the contract, are solved correctly, and train."""

import functools
import importlib
import itertools

import jax
import numpy as np
import pytest

from alphagat import games, load
from alphagat.cli import check
from alphagat.config_files import load_config
from alphagat.errors import UserError
from alphagat.evaluation.players import random_player
from alphagat.runs.metrics import read_metrics
from alphagat.training.loop import train
from tests.guides import code_of, installed
from tests.training.tiny import tiny_config

GUIDE = "solve_a_problem.md"
BOARD = "independent_set:4"
PROJECT = {
    "name": "independent_set",
    "version": "0.1",
    "entry-points": {
        games.ENTRY_POINTS: {
            "independent_set": "independent_set:make_independent_set",
            "graph_set": "graph_set:make_graph_set",
        }
    },
}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    """Installs the game as a reader would, in a package, with the other files of the guide beside it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "independent_set.py").write_text(code_of(GUIDE, "class IndependentSetGame"))
    (folder / "graph_set.py").write_text(code_of(GUIDE, "class GraphSetGame"))
    (folder / "solve.py").write_text(code_of(GUIDE, "def solve("))
    (folder / "solve_graphs.py").write_text(code_of(GUIDE, "def largest_of"))
    (folder / "sets.py").write_text(code_of(GUIDE, "def get_config"))
    with installed(folder, PROJECT):
        yield folder


@functools.cache
def instances(board, number):
    return jax.vmap(games.make_game(board).init)(jax.random.split(jax.random.key(1), number))


@pytest.mark.parametrize("board", [BOARD, "graph_set:8"])
def test_the_problems_keep_the_contract(board):
    assert check.run([board]) == 0


def cells_of(grid):
    """Returns the row and column of each cell that is True."""
    return [tuple(cell) for cell in np.argwhere(grid)]


def touching(cells):
    """Returns whether two of the cells, rows and columns, touch."""
    return any(max(abs(a - c), abs(b - d)) <= 1 for (a, b), (c, d) in itertools.combinations(cells, 2))


def test_the_exact_size_is_that_of_all_subsets():
    solve = importlib.import_module("solve")
    for present in np.asarray(instances(BOARD, 12).free).reshape(-1, 4, 4):
        subsets = (subset for size in range(5) for subset in itertools.combinations(cells_of(present), size))
        assert solve.largest(present) == max(len(subset) for subset in subsets if not touching(subset))


def chosen_sets(adjacent):
    """Returns all independent sets of a graph `[N, N]`."""
    number = len(adjacent)
    subsets = (list(each) for size in range(number + 1) for each in itertools.combinations(range(number), size))
    return [subset for subset in subsets if not adjacent[np.ix_(subset, subset)].any()]


def test_the_exact_size_on_graphs_is_that_of_all_subsets():
    solve_graphs = importlib.import_module("solve_graphs")
    for adjacent in np.asarray(instances("graph_set:10", 12).adjacent):
        assert solve_graphs.largest_of(adjacent) == max(map(len, chosen_sets(adjacent)))


def test_graphs_have_the_degree_that_the_game_states_and_solutions_are_maximal():
    solve, game = importlib.import_module("solve"), games.make_game("graph_set:20")
    states = instances(game.name, 100)
    adjacent = np.asarray(states.adjacent)
    assert (adjacent == adjacent.swapaxes(1, 2)).all()
    assert not adjacent[:, range(20), range(20)].any()
    assert adjacent.sum(axis=-1).mean() == pytest.approx(5, abs=0.3)
    chosen = np.asarray(solve.solve(game, solve.greedy_player(game), states).chosen)
    neighbours = np.einsum("bij,bj->bi", adjacent, chosen.astype(int))
    assert ((neighbours == 0) == chosen).all()


def test_edges_of_a_graph_lead_between_free_vertices():
    game = games.make_game("graph_set:6")
    ring = np.roll(np.eye(6, dtype=bool), 1, axis=0) | np.roll(np.eye(6, dtype=bool), -1, axis=0)
    state = game.step(game.start(ring), np.int32(0), None)
    assert np.flatnonzero(state.free).tolist() == [2, 3, 4]
    edges = np.asarray(game.edges(state))
    assert (edges[..., 0] == np.eye(6)).all()
    assert {tuple(each) for each in np.argwhere(edges[..., 1])} == {(2, 3), (3, 2), (3, 4), (4, 3)}
    assert np.asarray(game.observe(state))[:, 1].tolist() == [0, 0, 1 / 8, 2 / 8, 1 / 8, 0]


@pytest.mark.parametrize("name", ["random", "fewest neighbours"])
def test_solutions_are_maximal_independent_sets(name):
    solve, game = importlib.import_module("solve"), games.make_game("independent_set:6")
    states = instances(game.name, 30)
    player = random_player(game) if name == "random" else solve.greedy_player(game)
    solved = solve.solve(game, player, states)
    shares = []
    for present, chosen in zip(np.asarray(states.free), np.asarray(solved.chosen)):
        assert not (chosen & ~present).any()
        found, left = (cells_of(cells.reshape(6, 6)) for cells in (chosen, present & ~chosen))
        assert not touching(found)
        assert all(any(touching([cell, each]) for each in found) for cell in left)
        shares.append(len(found) / solve.largest(present.reshape(6, 6)))
    assert max(shares) <= 1
    assert (np.mean(shares) > 0.95) == (name != "random")


def test_turned_instances_are_played_alike():
    game, states = games.make_game("independent_set:5"), instances("independent_set:5", 4)
    action = states.free.argmax(axis=-1)
    step = jax.vmap(lambda state, action: game.step(state, action, None))
    after = step(states, action)
    for cells, actions in zip(game.symmetries.node_permutations, game.symmetries.action_permutations):
        turned = step(states.replace(free=states.free[:, cells]), np.argsort(actions)[action])
        assert (turned.free == after.free[:, cells]).all()
        assert (jax.vmap(game.observe)(turned) == jax.vmap(game.observe)(after)[:, cells]).all()


def test_the_sum_of_rewards_is_the_share_of_the_bound():
    game = games.make_game("independent_set:5")
    state, total = game.init(jax.random.key(0)), 0.0
    while not state.terminated:
        state = game.step(state, np.int32(np.flatnonzero(state.legal_action_mask)[0]), None)
        total += float(state.rewards[0])
    assert total == pytest.approx(int(state.chosen.sum()) / 9)


@pytest.mark.parametrize("family", ["independent_set", "graph_set"])
def test_the_config_trains_and_its_network_solves_other_sizes(folder, tmp_path, family):
    guide = load_config(str(folder / "sets.py"))
    assert guide.boards == ("independent_set:8",)
    config = tiny_config()
    config.boards, config.num_iterations, config.evaluation.every, config.mesh.data = (f"{family}:6",), 5, 0, 1
    config.search.value_scale = guide.search.value_scale
    train(config, tmp_path)
    assert read_metrics(tmp_path)[-1]["train/policy_loss"] > 0
    agent = load(str(tmp_path), board=f"{family}:7")
    solved = importlib.import_module("solve").solve(agent.game, agent.player(2), instances(f"{family}:7", 4))
    assert solved.terminated.all()


@pytest.mark.parametrize("name", ["graph_set:5", "graph_set:100"])
def test_other_numbers_of_vertices_are_refused_in_one_line(name):
    with pytest.raises(UserError, match=r"graph_set:SIZE with a size from 6 to 99") as error:
        games.make_game(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["independent_set", "independent_set:2", "independent_set:20", "independent_set:05"])
def test_other_sizes_are_refused_in_one_line(name):
    with pytest.raises(UserError, match=r"independent_set:SIZE with a size from 3 to 19") as error:
        games.make_game(name)
    assert "\n" not in str(error.value)
