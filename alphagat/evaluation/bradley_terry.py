"""The fit of Bradley and Terry's model (1952): the strengths under which the results of pairs are most likely."""

import numpy as np

MAX_STEPS = 200
MAX_STEP = 4.0  # of a strength at once: where results are nearly certain the likelihood is flat, and Newton leaps
TOLERANCE = 1e-6  # of the last step; the error after it is about its square
ROUNDING = 1e-12  # of a likelihood, relatively
SMALLEST_WEIGHT = 1e-200


def fit(players: np.ndarray, wins: np.ndarray, losses: np.ndarray, num_players: int, origin: int) -> np.ndarray:
    """Returns `[R, num_players]` float64 strengths in units of the natural logarithm, with that of `origin` 0.

    Newton's method on R fits at once, with steps halved until the likelihood, which is concave, does not fall. It works
    on differences of strengths, so that players may be any distance apart: methods that work on their exponentials, as
    LSR and MM do, end in nan a few thousand Elo away.

    Args:
      players: `[P, 2]` int, the pairs that met, each pair once; they link all players.
      wins: `[R, P]` float64 above 0, of the first of each pair; not only whole ones.
      losses: `[R, P]` the same of the second.
    """
    network = _Network(players, num_players, origin)
    wins, losses = wins.T, losses.T  # fits along the last axis from here on
    games = wins + losses
    # Least squares on the log-odds of each pair: exact where the pairs form a tree.
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


class _Network:
    """The pairs as an electrical network: weights conduct, pulls are currents, strengths are potentials.

    Players are eliminated one by one, those with the fewest neighbours first, by the star-mesh transform. It only adds
    and multiplies what is positive, so no weight is too small for it; and a run, whose networks met few others each,
    costs no more than its pairs.
    """

    def __init__(self, players: np.ndarray, num_players: int, origin: int):
        self._first, self._second = players.T
        self._num_players = num_players
        neighbours: dict[int, set[int]] = {player: set() for player in range(num_players)}
        for first, second in players.tolist():
            neighbours[first].add(second)
            neighbours[second].add(first)
        self._order: list[tuple[int, np.ndarray]] = []
        while len(neighbours) > 1:
            player = min(neighbours.keys() - {origin}, key=lambda each: (len(neighbours[each]), each))
            around = neighbours.pop(player)
            for each in around:
                neighbours[each] |= around
                neighbours[each] -= {each, player}
            self._order.append((player, np.array(sorted(around))))

    def differences(self, strengths: np.ndarray) -> np.ndarray:
        """Returns `[P, R]`, how much stronger the first of each pair is, of strengths `[K, R]`."""
        return strengths[self._first] - strengths[self._second]

    def solve(self, weights: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """Returns the `[K, R]` strengths at which the weighted differences of the pairs, summed over each player's,
        are its pulls; `weights` and `pulls` are `[P, R]`, a pull upwards on the first of the pair.
        """
        first, second = self._first, self._second
        conductance = np.zeros((self._num_players, self._num_players, weights.shape[1]))
        conductance[first, second] = conductance[second, first] = np.maximum(weights, SMALLEST_WEIGHT)
        current = np.zeros((self._num_players, weights.shape[1]))
        np.add.at(current, first, pulls)
        np.subtract.at(current, second, pulls)
        shares = []
        for player, around in self._order:
            ways = conductance[player, around]
            share = ways / ways.sum(axis=0)
            conductance[around[:, None], around] += share[:, None] * ways
            current[around] += share * current[player]
            current[player] /= ways.sum(axis=0)
            shares.append(share)
        potential = np.zeros_like(current)
        for (player, around), share in zip(self._order[::-1], shares[::-1]):
            potential[player] = current[player] + (share * potential[around]).sum(axis=0)
        return potential


def _climb(
    network: _Network,
    strengths: np.ndarray,
    step: np.ndarray,
    likelihood: np.ndarray,
    wins: np.ndarray,
    losses: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Takes the largest of the step, its half, its quarter, ... that does not lower the likelihood of each fit."""
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
    """Returns the logarithm of the likelihood `[R]` of differences `[P, R]` in strength."""
    return -(wins * np.logaddexp(0, -differences) + losses * np.logaddexp(0, differences)).sum(axis=0)
