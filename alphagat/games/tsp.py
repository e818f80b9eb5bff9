"""The travelling salesman problem: visit all cities and return to the first, on a tour as short as possible.

A game for one player on N cities, uniformly random in the unit square. The tour starts at city 1; a move goes to a city
that was not visited, and the last move also returns. The score, paid by the last move, is a lower bound on the length
of every tour, divided by the length of this one, so it is at most 1. The bound is half the sum of each city's two
shortest distances, since a tour uses two edges of each city.
"""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import base, places, svg
from alphagat.games.symmetries import Symmetries
from alphagat.graphs.topology import RelationVocabulary, complete_topology

MIN_CITIES, MAX_CITIES = 4, 100
SCALES = np.array([0.5, 1.0, 2.0, 4.0], np.float32)  # of distances, in units of 1 / sqrt(N)
VOCABULARY = RelationVocabulary(
    family="tsp",
    version=1,
    relations=("self", *(f"at scale {scale:g}" for scale in SCALES)),
    node_kinds=("city",),
)
MAP = 10 * places.CELL  # pixels along a side of the unit square


class TspState(base.State):
    """A tour so far.

    Attributes:
      cities: `[N, 2]` float32 in [0, 1), x from left to right and y from top to bottom.
      tour: `[N]` int8, the cities in the order of the visits; -1 for those to come.
      num_visited: `[]` int8.
      visited: `[N]` bool.
      length: `[]` float32, of the tour so far.
      bound: `[]` float32, a lower bound on the length of any tour.
    """

    cities: jax.Array
    tour: jax.Array
    num_visited: jax.Array
    visited: jax.Array
    length: jax.Array
    bound: jax.Array

    @property
    def legal_action_mask(self) -> jax.Array:
        return ~self.visited

    @property
    def current(self) -> jax.Array:
        """The last city visited."""
        return self.tour[self.num_visited - 1].astype(jnp.int32)


class TspGame(base.Game):
    """The rules and features of N cities.

    Positions show only the rest of the problem, a shortest path from the current city through those to come to the
    first: cities in the middle of the tour have no edge to others. A pair at distance d has the strength
    exp(-d sqrt(N) / s) in the relation of each scale s, so the typical distance of neighbours, 1 / sqrt(N), looks alike
    for all N. Neither features nor edges depend on where the map lies or how it is turned.

    Features per city: still to come; current; first; strengths of the pair with the current and with the first city, at
    each scale, 0 in the middle of the tour; and, equal for all cities, the share of the cities still to come, the bound
    in units of sqrt(N), and L / (L + bound) for the length L so far.
    """

    num_players = 1
    num_features = 3 + 2 * len(SCALES) + 3
    goal = "Visit all cities and return to the first. The shorter the tour, the higher the score."

    def __init__(self, num_cities: int):
        """Makes the game. Raises UserError for a number of cities out of range."""
        self.name = f"tsp:{num_cities}"
        if not MIN_CITIES <= num_cities <= MAX_CITIES:
            raise UserError(
                f"board {self.name}: {num_cities} cities are out of range; use {MIN_CITIES} to {MAX_CITIES}"
            )
        self.num_cities = num_cities
        self.max_plies = num_cities - 1
        self.action_names = tuple(str(city + 1) for city in range(num_cities))
        self.topology = complete_topology(VOCABULARY, num_cities)
        nothing_moves = np.arange(num_cities, dtype=np.int32)[None]
        self.symmetries = Symmetries(nothing_moves, nothing_moves)

    def init(self, key: jax.Array) -> TspState:
        cities = jax.random.uniform(key, (self.num_cities, 2))
        return self.start(cities)

    def start(self, cities: jax.Array) -> TspState:
        """Returns the first state of an instance; `cities` is `[N, 2]` in the unit square."""
        is_first = jnp.arange(self.num_cities) == 0
        to_others = jnp.where(jnp.eye(self.num_cities, dtype=bool), jnp.inf, distances(cities, cities))
        shortest, _ = jax.lax.top_k(-to_others, 2)
        return TspState(
            current_player=jnp.int8(0),
            rewards=jnp.zeros(1),
            terminated=jnp.bool_(False),
            cities=cities,
            tour=jnp.where(is_first, jnp.int8(0), jnp.int8(-1)),
            num_visited=jnp.int8(1),
            visited=is_first,
            length=jnp.float32(0),
            bound=-shortest.sum() / 2,
        )

    def step(self, state: TspState, action: jax.Array, key: jax.Array) -> TspState:
        del key
        is_next, number = jnp.arange(self.num_cities) == action, state.num_visited
        is_last = number == self.num_cities - 1
        here, there, first = state.cities[state.current], state.cities[action], state.cities[0]
        length = state.length + distance(here, there) + jnp.where(is_last, distance(there, first), 0)
        after = state.replace(
            rewards=jnp.where(is_last, state.bound / length, 0)[None],
            terminated=is_last,
            tour=jnp.where(jnp.arange(self.num_cities) == number, action.astype(jnp.int8), state.tour),
            num_visited=number + jnp.int8(1),
            visited=state.visited | is_next,
            length=length,
        )
        return base.absorb(state, after)

    def edges(self, state: TspState) -> jax.Array:
        of_rest = self._rest(state)
        pairs = of_rest[:, None] & of_rest[None] & ~np.eye(self.num_cities, dtype=bool)
        strengths = jnp.where(pairs[..., None], self._strengths(state.cities, state.cities), 0)
        return jnp.concatenate([np.eye(self.num_cities, dtype=np.float32)[..., None], strengths], axis=-1)

    def observe(self, state: TspState) -> jax.Array:
        city, ends = jnp.arange(self.num_cities), jnp.stack([state.current, 0])
        to_ends = self._strengths(state.cities, state.cities[ends]).reshape(self.num_cities, -1)
        of_tour = jnp.stack([
            1 - state.num_visited / self.num_cities,
            state.bound / math.sqrt(self.num_cities),
            state.length / (state.length + state.bound),
        ])  # fmt: skip
        flags = jnp.stack([~state.visited, city == state.current, city == 0], axis=-1)
        return jnp.concatenate(
            [
                flags.astype(jnp.float32),
                jnp.where(self._rest(state)[:, None], to_ends, 0),
                jnp.broadcast_to(of_tour, (self.num_cities, len(of_tour))),
            ],
            axis=-1,
        )

    def _rest(self, state: TspState) -> jax.Array:
        """Returns `[N]` bool: the cities on which the rest of the tour depends."""
        city = jnp.arange(self.num_cities)
        return ~state.visited | (city == state.current) | (city == 0)

    def _strengths(self, some: jax.Array, others: jax.Array) -> jax.Array:
        """Returns `[N, M, S]`, the strengths of pairs of cities, `[N, 2]` and `[M, 2]`, at each scale."""
        return jnp.exp(-distances(some, others)[..., None] * math.sqrt(self.num_cities) / SCALES[None, None])

    def render(self, state: TspState) -> str:
        lines = [f"{name:>3} ({x:.3f}, {y:.3f})" for name, (x, y) in zip(self.action_names, np.asarray(state.cities))]
        tour = " ".join(self.action_names[city] for city in self._tour(state))
        status = "over" if state.terminated else "to visit: a city that is not in the tour"
        return "\n".join((*lines, f"tour: {tour}", f"length: {float(state.length):.4f}", status))

    def render_svg(self, state: TspState) -> str:
        middles = [(x, y) for x, y, *_ in self.node_places(state).tolist()]
        tour = self._tour(state)
        path = [middles[city] for city in tour] + ([middles[0]] if state.terminated else [])
        side = MAP + 2 * places.MARGIN
        shapes = [svg.rectangle(2, 2, side - 4, side - 4, 12, svg.PANEL), svg.line(path, 4, svg.COLOURS[1])]
        for city, (x, y) in enumerate(middles):
            colour = svg.COLOURS[0] if city == tour[-1] else svg.COLOURS[1] if city in tour else svg.LABEL
            shapes.append(svg.disc(x, y, 0.22 * places.CELL, colour))
            shapes.append(svg.bold_label(x, y, self.action_names[city], 0.25 * places.CELL))
        return svg.document(side, side, shapes)

    def node_places(self, state: TspState) -> np.ndarray:
        middles = places.MARGIN + MAP * np.asarray(state.cities, np.float64)
        return np.concatenate([middles, np.full((self.num_cities, 2), 0.5 * places.CELL)], axis=-1)

    def _tour(self, state: TspState) -> list[int]:
        return np.asarray(state.tour)[: int(state.num_visited)].tolist()


def distance(one: jax.Array, other: jax.Array) -> jax.Array:
    """Returns the distances of points `[..., 2]`."""
    return jnp.sqrt(jnp.square(one - other).sum(axis=-1))


def distances(some: jax.Array, others: jax.Array) -> jax.Array:
    """Returns `[N, M]`, the distances of points `[N, 2]` and `[M, 2]`."""
    return distance(some[:, None], others[None])


def make_tsp(name: str) -> TspGame:
    """Makes `tsp:N`."""
    match = re.fullmatch("tsp:([1-9][0-9]{0,5})", name)
    if not match:
        raise UserError(f"board {name}: it must be tsp:CITIES, e.g. tsp:20")
    return TspGame(int(match[1]))
