"""The travelling salesman problem against brute force, in float64."""

import functools
import itertools
import math
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.games.tsp import SCALES

BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "tsp.py"))
STEP = functools.cache(lambda name: jax.jit(make_game(name).step))


def draw_cities(number: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=(number, 2)).astype(np.float32)


def play(name: str, cities: np.ndarray, order: tuple[int, ...]):
    """Returns all states of a tour that visits the cities in this order."""
    states = [make_game(name).start(jnp.asarray(cities))]
    for city in order:
        states.append(STEP(name)(states[-1], jnp.int32(city), jax.random.key(0)))
    return states


def length_of(cities: np.ndarray, tour: list[int]) -> float:
    """Returns the length of a closed tour."""
    return sum(math.dist(cities[one], cities[other]) for one, other in itertools.pairwise([*tour, tour[0]]))


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_shares_of_a_bound_below_the_shortest_tour(seed: int):
    cities = draw_cities(6, seed)
    lengths = {order: length_of(cities, [0, *order]) for order in itertools.permutations(range(1, 6))}
    bound = sum(sum(sorted(math.dist(one, other) for other in cities)[1:3]) for one in cities) / 2
    assert bound <= min(lengths.values()) + 1e-6
    for order in itertools.islice(lengths, 0, None, 17):
        states = play("tsp:6", cities, order)
        assert [float(state.rewards[0]) for state in states[:-1]] == [0] * 5
        assert [bool(state.terminated) for state in states] == [False] * 5 + [True]
        assert float(states[-1].rewards[0]) == pytest.approx(bound / lengths[order], rel=1e-5)
        assert float(states[-1].length) == pytest.approx(lengths[order], rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_benchmark_finds_shortest_tours(seed: int):
    cities = draw_cities(7, seed)
    between = np.linalg.norm(cities[:, None] - cities, axis=-1)
    shortest = min(length_of(cities, [0, *order]) for order in itertools.permutations(range(1, 7)))
    assert BENCHMARK["shortest_tour"](between) == pytest.approx(shortest, rel=1e-6)


def test_a_tour_along_a_ring_reaches_the_bound():
    angles = np.arange(8) * np.pi / 4
    ring = 0.5 + 0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    assert float(play("tsp:8", ring, tuple(range(1, 8)))[-1].rewards[0]) == pytest.approx(1, rel=1e-5)


def test_visited_cities_are_illegal():
    states = play("tsp:5", draw_cities(5, 0), (3, 1))
    assert [np.flatnonzero(state.legal_action_mask).tolist() for state in states] == [[1, 2, 3, 4], [1, 2, 4], [2, 4]]


def test_edges_are_strengths_between_the_cities_of_the_rest():
    game, cities = make_game("tsp:6"), draw_cities(6, 1)
    state = play("tsp:6", cities, (4, 2))[-1]  # 4 lies in the middle of the tour
    edges = np.asarray(game.edges(state))
    assert edges.shape == (6, 6, 1 + len(SCALES))
    for one, other in np.ndindex(6, 6):
        expected = np.exp(-math.dist(cities[one], cities[other]) * math.sqrt(6) / SCALES)
        if one == other or 4 in (one, other):
            expected = np.zeros(len(SCALES))
        np.testing.assert_allclose(edges[one, other], [one == other, *expected], rtol=1e-5)


def test_features_follow_their_description():
    game, cities = make_game("tsp:6"), draw_cities(6, 2)
    state = play("tsp:6", cities, (4, 2))[-1]
    nodes = np.asarray(game.observe(state))
    to_come, current, first, *rest = nodes.T
    assert np.flatnonzero(to_come).tolist() == [1, 3, 5]
    assert (np.flatnonzero(current), np.flatnonzero(first)) == ([2], [0])
    for city in range(6):
        strengths = [np.exp(-math.dist(cities[city], cities[end]) * math.sqrt(6) / SCALES) for end in (2, 0)]
        expected = np.concatenate(strengths) * (city != 4)
        np.testing.assert_allclose(np.array(rest)[: 2 * len(SCALES), city], expected, rtol=1e-5)
    bound = float(state.bound)
    so_far = math.dist(cities[0], cities[4]) + math.dist(cities[4], cities[2])
    np.testing.assert_allclose(nodes[:, -3:], [[3 / 6, bound / math.sqrt(6), so_far / (so_far + bound)]] * 6, rtol=1e-5)


def test_neither_features_nor_edges_depend_on_place_and_angle():
    game, cities = make_game("tsp:6"), draw_cities(6, 3)
    turned = 0.3 + (cities - 0.5) @ np.array([[0.6, 0.8], [-0.8, 0.6]], np.float32)
    one, other = (play("tsp:6", each, (5,))[-1] for each in (cities, turned))
    np.testing.assert_allclose(game.observe(one), game.observe(other), atol=1e-5)
    np.testing.assert_allclose(game.edges(one), game.edges(other), atol=1e-5)


def test_what_lies_behind_does_not_matter_but_for_its_length():
    """Two tours through the same cities in another order show the same edges and nearly the same features."""
    game, cities = make_game("tsp:7"), draw_cities(7, 4)
    one, other = (play("tsp:7", cities, order)[-1] for order in ((1, 2, 3), (2, 1, 3)))
    assert (game.edges(one) == game.edges(other)).all()
    differ = np.flatnonzero((game.observe(one) != game.observe(other)).any(axis=0))
    assert differ.tolist() == [game.num_features - 1]


def test_the_drawing_shows_the_closed_tour():
    game, cities = make_game("tsp:4"), draw_cities(4, 5)
    states = play("tsp:4", cities, (2, 1, 3))
    assert "tour: 1 3 2 4\nlength: " in game.render(states[-1])
    for state, points in zip(states, (1, 2, 3, 5), strict=True):
        drawing = game.render_svg(state)
        (path,) = [line for line in drawing.splitlines() if "polyline" in line]
        assert len(path.split('"')[1].split()) == points
        x, y = game.node_places(state)[0, :2]
        assert f'cx="{x:.1f}" cy="{y:.1f}"' in drawing
