"""Maximum-likelihood fit of the Bradley-Terry model (1952)."""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

MAX_STEPS = 200
MAX_STEP = (
    4.0  # largest change of a strength per step: near certain results the likelihood is flat and Newton overshoots
)
TOLERANCE = 1e-6  # on the last step; Newton's error is about its square
ROUNDING = 1e-12  # relative rounding error of a likelihood
SMALLEST_WEIGHT = 1e-200


def fit(players: np.ndarray, wins: np.ndarray, losses: np.ndarray, num_players: int, origin: int) -> np.ndarray:
    """Returns `[R, num_players]` float64 strengths in units of the natural logarithm, with that of `origin` 0.

    Runs Newton's method on R fits in parallel. Steps are halved until the concave log-likelihood does not fall. It
    uses differences of strengths, so players may be arbitrarily far apart; methods on exponentials of strengths, such
    as LSR and MM, give NaN beyond a few thousand Elo.

    Args:
      players: `[P, 2]` int, the pairs that played, each once; they connect all players.
      wins: `[R, P]` positive float64, wins of the first player of each pair; may be fractional.
      losses: `[R, P]`, wins of the second player.
    """
    network = _Network(players, num_players, origin)
    wins, losses = wins.T, losses.T  # from here on, fits are along the last axis
    games = wins + losses
    # Least squares on the log-odds of each pair is exact if the pairs form a tree.
    weights = wins * losses / games
    strengths = network.solve(weights, weights * np.log(wins / losses))
    likelihood = _likelihood(network.differences(strengths), wins, losses)
    for _ in range(MAX_STEPS):
        expected = 0.5 * (1 + np.tanh(network.differences(strengths) / 2))
        step = network.solve(games * expected * (1 - expected), wins - games * expected)
        largest = np.abs(step).max(axis=0)
        step *= np.minimum(1, MAX_STEP / np.maximum(largest, MAX_STEP))
        strengths, likelihood = _climb(network, strengths, step, likelihood, wins, losses)
        if (largest < TOLERANCE).all():
            break
    return strengths.T


class _Star(NamedTuple):
    """The elimination of one player: its edges become edges between its neighbours.

    Attributes:
      player: number.
      around: `[n]` int, its neighbours.
      rays: `[n]` int, the edges to them.
      first, second: `[n (n - 1) / 2]` int, positions in `around` of each pair of neighbours.
      mesh: the edge of each pair.
    """

    player: int
    around: np.ndarray
    rays: np.ndarray
    first: np.ndarray
    second: np.ndarray
    mesh: np.ndarray


class _Network:
    """The pairs as an electrical network: weights are conductances, pulls are currents, strengths are potentials.

    The star-mesh transform eliminates players one by one, fewest neighbours first. It only adds and multiplies positive
    numbers, so it is stable for arbitrarily small weights. On sparse networks, cost and memory are linear in the pairs.
    """

    def __init__(self, players: np.ndarray, num_players: int, origin: int):
        self._first, self._second = players.T
        self._num_players = num_players
        self._edges: dict[tuple[int, int], int] = {}
        self._stars = [self._star(player, around) for player, around in _eliminations(players, num_players, origin)]
        self._pairs = self._numbers(self._first, self._second)

    def _numbers(self, ones: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Returns the numbers of edges, new ones included."""
        ends = zip(np.minimum(ones, others).tolist(), np.maximum(ones, others).tolist())
        return np.array([self._edges.setdefault(each, len(self._edges)) for each in ends], int)

    def _star(self, player: int, around: np.ndarray) -> _Star:
        first, second = np.triu_indices(len(around), 1)
        rays = self._numbers(np.full(len(around), player), around)
        return _Star(player, around, rays, first, second, self._numbers(around[first], around[second]))

    def differences(self, strengths: np.ndarray) -> np.ndarray:
        """Returns `[P, R]` strength differences, first minus second player of each pair, for strengths `[K, R]`."""
        return strengths[self._first] - strengths[self._second]

    def solve(self, weights: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """Solves the weighted Laplacian system; `weights` and `pulls` are `[P, R]`, the result `[K, R]` strengths.

        For each player, the weighted differences of its pairs sum to its pulls. A positive pull raises the first player
        of a pair.
        """
        conductance = np.zeros((len(self._edges), weights.shape[1]))
        conductance[self._pairs] = np.maximum(weights, SMALLEST_WEIGHT)
        current = np.zeros((self._num_players, weights.shape[1]))
        np.add.at(current, self._first, pulls)
        np.subtract.at(current, self._second, pulls)
        shares = []
        for star in self._stars:
            ways = conductance[star.rays]
            share = ways / ways.sum(axis=0)
            conductance[star.mesh] += share[star.first] * ways[star.second]
            current[star.around] += share * current[star.player]
            current[star.player] /= ways.sum(axis=0)
            shares.append(share)
        potential = np.zeros_like(current)
        for star, share in zip(self._stars[::-1], shares[::-1]):
            potential[star.player] = current[star.player] + (share * potential[star.around]).sum(axis=0)
        return potential


def _eliminations(players: np.ndarray, num_players: int, origin: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yields each player but `origin`, fewest neighbours first, with its neighbours at that moment."""
    neighbours: dict[int, set[int]] = {player: set() for player in range(num_players)}
    for first, second in players.tolist():
        neighbours[first].add(second)
        neighbours[second].add(first)
    queue = [(len(around), player) for player, around in neighbours.items() if player != origin]
    heapq.heapify(queue)
    while queue:
        count, player = heapq.heappop(queue)
        if player not in neighbours or len(neighbours[player]) != count:
            continue  # its number of neighbours has changed since
        around = neighbours.pop(player)
        for each in around:
            neighbours[each] |= around
            neighbours[each] -= {each, player}
            if each != origin:
                heapq.heappush(queue, (len(neighbours[each]), each))
        yield player, np.array(sorted(around))


def _climb(
    network: _Network,
    strengths: np.ndarray,
    step: np.ndarray,
    likelihood: np.ndarray,
    wins: np.ndarray,
    losses: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Halves the step of each fit until the likelihood does not fall."""
    scale = np.ones(strengths.shape[1])
    for _ in range(30):
        after = strengths + scale * step
        reached = _likelihood(network.differences(after), wins, losses)
        falls = reached < likelihood * (1 + ROUNDING)  # likelihoods are below 0
        if not falls.any():
            return after, reached
        scale[falls] /= 2
    return np.where(falls, strengths, after), np.where(falls, likelihood, reached)


def _likelihood(differences: np.ndarray, wins: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Returns the log-likelihood `[R]` of strength differences `[P, R]`."""
    return -(wins * np.logaddexp(0, -differences) + losses * np.logaddexp(0, differences)).sum(axis=0)
