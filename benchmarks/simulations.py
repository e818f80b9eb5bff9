"""Measures what more simulations buy: better values and moves in solved positions, and strength.

    python benchmarks/simulations.py values --board hex:7
    python benchmarks/simulations.py strength --board hex:7

`values` searches solved positions with 0 (the network alone) and with increasing numbers of simulations. Columns: the
share of decided positions whose winner the value names; the error (RMS) and the mean error of the value for the player
to move; the shares of best moves and of moves that keep the result. The positions:

- Connect Four, by an exact solver: the 49 openings of two plies, and in other rows 300 positions after 2 to 11 random
  plies. The best move is the fastest win or slowest loss. Exact values are discounted like those of each search.
- Hex 7x7: the 49 openings of one ply, by Hayward et al. 2005, and in other rows 300 positions after 12 to 20 random
  plies, by an exact solver. Moves are not judged.
- Othello 6x6: 300 after 22 random plies, with 10 empty cells, by negamax. The best move wins by the most discs.

`strength` plays matches of each number of simulations against the one before, from distinct openings, each with both
colours; the last match has a quarter of the games.

Both take `--search NAME FIELD=VALUE ...`, such as `--search floor search.min_value_range=1`, to compare settings.
Without it, the search is that of the network's config.
"""

import argparse
import copy
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from openings import exact_signs
from rich.console import Console
from rich.progress import track
from rich.table import Table

from alphagat import config_files, config_validation, load
from alphagat.agents.agent import Agent
from alphagat.agents.analysis import no_search
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.hex_solver import HexSolver
from alphagat.evaluation.openings import distinct_openings, openings_after, random_positions
from alphagat.evaluation.oracles import ILLEGAL_SCORE, score_positions
from alphagat.evaluation.players import search_player
from alphagat.games.base import Game
from alphagat.games.batches import count
from alphagat.runtime import sharding
from alphagat.search import Search

NUM_POSITIONS = 300
CELLS = 42  # of Connect Four
STORED = "stored"
CONSOLE = Console(width=160)


class Solved(NamedTuple):
    """Solved positions.

    Attributes:
      states: `[N]`.
      results: `[N]`, exact, for the player to move: -1, 0 or 1.
      plies: `[N]`, the plies until the end with the best moves; 1 where they are unknown, so values are not discounted.
      scores: `[N, A]`, the exact score of each move, `ILLEGAL_SCORE` if illegal; None if unknown.
    """

    states: Any
    results: np.ndarray
    plies: np.ndarray | int = 1
    scores: np.ndarray | None = None

    def values(self, discount: float) -> np.ndarray:
        """Returns the exact values `[N]` for the player to move, discounted like those of the search."""
        return self.results * discount ** (self.plies - 1.0)


def connect_four_plies(boards: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Returns the plies until the end with the best moves, `[N]`.

    Args:
      boards: `[N, 42]`, 0 for empty cells.
      best: `[N]`, the score of the best move.
    """
    played = (boards != 0).sum(axis=-1)
    winner = (played + (best < 0)) % 2  # 0: moves first
    length = 2 * (CELLS // 2 + 1 - abs(best)) - (winner == 0)  # a score counts the winner's stones left, plus 1
    return np.where(best == 0, CELLS, length) - played


def solved_connect_four(game: Game) -> dict[str, Solved]:
    def solved(states: Any) -> Solved:
        scores = score_positions(game, states)
        best = scores.max(axis=1)
        return Solved(states, np.sign(best), connect_four_plies(np.asarray(states.board), best), scores)

    return {
        "openings": solved(jax.device_get(openings_after(game, 2, seed=0).states)),
        "2 to 11 plies": solved(jax.device_get(random_positions(game, NUM_POSITIONS, 2, 11, seed=0))),
    }


def solved_hex(game: Game) -> dict[str, Solved]:
    openings = openings_after(game, 1, seed=0)
    states = jax.device_get(random_positions(game, NUM_POSITIONS, 12, 20, seed=0))
    solver, bits = HexSolver(7), 1 << np.arange(game.num_actions, dtype=np.int64)
    values = [
        solver.value((int(bits[cells > 0].sum()), int(bits[cells < 0].sum())))
        for cells in track(np.asarray(states.cells), "solving", console=CONSOLE)
    ]
    return {
        "openings": Solved(jax.device_get(openings.states), -exact_signs(game, openings)),
        "12 to 20 plies": Solved(states, np.array(values)),
    }


def solved_othello(game: Game) -> dict[str, Solved]:
    states = jax.device_get(random_positions(game, NUM_POSITIONS, 22, 22, seed=0))
    rows = []
    for number in track(range(NUM_POSITIONS), "solving", console=CONSOLE):
        player = int(states.current_player[number])
        own, other = (
            sum(int(row) << 6 * r for r, row in enumerate(states.discs[number, p])) for p in (player, 1 - player)
        )
        after = othello_moves(own, other)
        scores = [ILLEGAL_SCORE] * game.num_actions
        for cell, flips in after.items():
            scores[cell] = -solve_othello(other & ~flips, own | flips | 1 << cell)
        if not after:
            scores[-1] = -solve_othello(other, own)
        rows.append(scores)
    scores = np.array(rows)
    return {"10 empty cells": Solved(states, np.sign(scores.max(axis=1)), scores=scores)}


@functools.cache
def othello_rays() -> list[list[list[int]]]:
    """Returns, for each cell of 6x6, the cells in each of the eight directions, nearest first."""
    steps = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1) if (down, right) != (0, 0)]
    inside = range(6)
    return [
        [
            [
                6 * (r + i * down) + c + i * right
                for i in inside[1:]
                if r + i * down in inside and c + i * right in inside
            ]
            for down, right in steps
        ]
        for r in inside
        for c in inside
    ]


def othello_moves(own: int, other: int) -> dict[int, int]:
    """Returns the discs that each legal move flips; discs and flips are sets of bits."""
    moves = {}
    for cell, rays in enumerate(othello_rays()):
        if (own | other) >> cell & 1:
            continue
        flips = 0
        for ray in rays:
            line = 0
            for there in ray:
                if other >> there & 1:
                    line |= 1 << there
                    continue
                if own >> there & 1:
                    flips |= line
                break
        if flips:
            moves[cell] = flips
    return moves


def solve_othello(own: int, other: int, low: int = -36, high: int = 36) -> int:
    """Returns the final difference of discs for the player to move, by negamax with alpha and beta."""
    moves = othello_moves(own, other)
    if not moves:
        if not othello_moves(other, own):
            return own.bit_count() - other.bit_count()
        return -solve_othello(other, own, -high, -low)
    for cell, flips in moves.items():
        low = max(low, -solve_othello(other & ~flips, own | flips | 1 << cell, -high, -low))
        if low >= high:
            break
    return low


SOLVERS: dict[str, Callable[[Game], dict[str, Solved]]] = {
    "connect_four": solved_connect_four,
    "hex:7": solved_hex,
    "othello:6": solved_othello,
}


def with_settings(agent: Agent, settings: list[str]) -> Agent:
    """Returns the agent with other settings, such as `search.min_value_range=1`."""
    config = config_files.override(copy.deepcopy(agent.config), [f"--config.{setting}" for setting in settings])
    config_validation.validate(config)
    return dataclasses.replace(agent, config=config)


def measure_values(agents: dict[str, Agent], simulations: list[int]) -> None:
    """Prints a table per group of positions. The row without search has the discount of the first agent."""
    first = next(iter(agents.values()))
    columns = "winner", "error", "mean error", "best moves", "keeps result"
    for title, positions in SOLVERS[first.game.name](first.game).items():
        table = Table("search", "simulations", *columns, title=f"{first.game.name}, {title}")
        table.add_row("none", "0", *describe(first, no_search(first.evaluator), positions))
        for number in simulations:
            for name, agent in agents.items():
                table.add_row(name, str(number), *describe(agent, agent.search(number), positions))
        CONSOLE.print(table)


def describe(agent: Agent, search: Search, solved: Solved) -> list[str]:
    """Returns the columns of `measure_values`."""
    num_positions = count(solved.states)
    plies = jnp.full(num_positions, 10**6)
    found = jax.jit(search)(agent.params, jax.random.key(0), jax.device_put(solved.states), plies)
    actions, values = jax.device_get((found.action, found.value))
    decided = solved.results != 0
    error = values - solved.values(agent.config.search.discount)
    cells = [
        f"{100 * (np.sign(values) == solved.results)[decided].mean():.1f} %",
        f"{math.sqrt((error**2).mean()):.3f}",
        f"{error.mean():+.3f}",
    ]
    if solved.scores is None:
        return [*cells, "", ""]
    chosen, best = solved.scores[np.arange(num_positions), actions], solved.scores.max(axis=1)
    shares = (chosen == best).mean(), (np.sign(chosen) == np.sign(best)).mean()
    return cells + [f"{100 * share:.1f} %" for share in shares]


def measure_strength(agents: dict[str, Agent], simulations: list[int], num_games: int, seed: int) -> None:
    table = Table("search", "simulations", "against", "games", "score", "95 % interval")
    for name, agent in agents.items():
        players = [search_player(f"{name} {number}", agent.search(number), agent.params) for number in simulations]
        for number in range(1, len(simulations)):
            games = num_games if number + 1 < len(simulations) or number == 1 else num_games // 4
            openings = distinct_openings(agent.game, games // 2, seed)
            result = play_match(agent.game, players[number], players[number - 1], openings, jax.random.key(seed))
            cells = f"{result.score:.1%}", result.interval_text
            table.add_row(name, str(simulations[number]), str(simulations[number - 1]), str(games), *cells)
            CONSOLE.print(f"{name}: {simulations[number]} against {simulations[number - 1]}: {cells[0]}")
    CONSOLE.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("values", "strength"))
    parser.add_argument("--board", required=True, choices=list(SOLVERS))
    parser.add_argument("--source", default="shipped", help="as in alphagat.load (default: %(default)s)")
    parser.add_argument("--simulations", type=int, nargs="+", default=[16, 64, 256, 1024], help="default: %(default)s")
    parser.add_argument(
        "--search", nargs="+", action="append", default=[], metavar="NAME FIELD=VALUE", help="adds a search"
    )
    parser.add_argument("--games", type=int, default=400, help="per match (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the matches (default: %(default)s)")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    agent = load(options.source, board=options.board)
    agents = {name: with_settings(agent, settings) for name, *settings in options.search} or {STORED: agent}
    if options.part == "values":
        measure_values(agents, options.simulations)
    else:
        measure_strength(agents, options.simulations, options.games, options.seed)


if __name__ == "__main__":
    main()
