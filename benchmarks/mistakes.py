"""Shows when a player gives results away, in game files of a match on a solved board.

    alphagat match runs/connect_four solver --opening_plies 2 --simulations 256 --games_at_once 98 --out games.sgf
    python benchmarks/mistakes.py games.sgf --player runs/connect_four --network runs/connect_four

A mistake is a move that lowers the exact value for its player: a win becomes a draw or a loss, or a draw a loss.
Prints, by ply, the moves of the player in positions that are not lost, its mistakes, and its first mistakes of games.
With `--network`, also how late the value of a network shows the effect of the last mistake of a game. A value is right
if it is nearer to that of the exact result than to those of the other results: on Connect Four those after as many
plies, on other boards without a discount.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from simulations import connect_four_plies

from alphagat.agents.agent import Agent, load
from alphagat.evaluation import game_files
from alphagat.evaluation.game_formats.record import GameRecord
from alphagat.evaluation.live_game import LiveGame
from alphagat.evaluation.oracles import score_positions
from alphagat.games import make_game
from alphagat.games.batches import stack
from alphagat.runtime import sharding


class Move(NamedTuple):
    """A move of the judged player: the index of its game, the plies before it, the state there, and its action."""

    game: int
    ply: int
    state: Any
    action: int


def moves_of(player: str, records: list[GameRecord], opening_plies: int) -> Iterator[Move]:
    """Yields the moves of the players whose names begin with `player`, after the opening."""
    for number, record in enumerate(records):
        live = LiveGame(make_game(record.board))
        for ply, name in enumerate(record.moves):
            before = live.position
            live.play(name)
            if ply >= opening_plies and record.names[before.player].startswith(player):
                yield Move(number, ply, before.state, before.legal_actions()[name])


def states_of(moves: list[Move]) -> Any:
    """Returns the states before the moves, `[N]`."""
    return stack(move.state for move in moves)


class Exact(NamedTuple):
    """What the solver knows about the position before each move, all `[N]`.

    Attributes:
      results: -1, 0 or 1, for the player to move.
      drops: by how much the move lowers the result.
      plies: until the end with the best moves; 1 on boards other than Connect Four.
    """

    results: np.ndarray
    drops: np.ndarray
    plies: np.ndarray | int


def solve_moves(moves: list[Move], states: Any, board: str) -> Exact:
    """Solves the positions `[N]` of `states_of`."""
    scores = score_positions(make_game(board), states)
    best = scores.max(axis=1)
    plies = connect_four_plies(np.asarray(states.board), best) if board == "connect_four" else 1
    results = np.sign(best)
    return Exact(results, results - np.sign(scores[np.arange(len(moves)), [move.action for move in moves]]), plies)


def plies_until_noticed(moves: list[Move], drops: np.ndarray, wrong: np.ndarray) -> list[float]:
    """Returns, for each game with a mistake, the plies from its last mistake until the value of a network is right
    and stays right; infinity if it never is.

    Args:
      drops: `[N]`, as in `Exact`.
      wrong: `[N]`, whether the value of the network before the move is wrong.
    """
    games, plies = np.array([(move.game, move.ply) for move in moves]).T
    delays = []
    for game in np.unique(games[drops > 0]):
        mistake = plies[(games == game) & (drops > 0)].max()
        after = (games == game) & (plies > mistake)
        unsure = plies[after & wrong].max(initial=mistake)
        delays.append(min(plies[after & (plies > unsure)], default=np.inf) - mistake)
    return delays


def wrong_values(agent: Agent, states: Any, exact: Exact) -> np.ndarray:
    """Returns whether the network's value before each move is wrong, `[N]`."""
    values = np.asarray(jax.jit(agent.evaluator)(agent.params, states).value)
    win = agent.config.search.discount ** (exact.plies - 1.0)  # the value of a win in as many plies
    nearest = np.clip(np.rint(values / win), -1, 1)  # the result whose value is nearest
    return nearest != exact.results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="an SGF file; all games on one board")
    parser.add_argument("--player", required=True, help="how the name of the player begins")
    parser.add_argument("--network", help="a trained network, such as a run folder")
    parser.add_argument("--opening_plies", type=int, default=2, help="not judged (default: %(default)s)")
    parser.add_argument("--plies", type=int, default=4, help="per row (default: %(default)s)")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    records = game_files.read_file(options.file)
    moves = list(moves_of(options.player, records, options.opening_plies))
    if not moves:
        parser.error(f"--player {options.player}: no player of {options.file} has a name that begins with it")
    states = states_of(moves)
    exact = solve_moves(moves, states, records[0].board)
    drops = exact.drops
    games, plies = np.array([(move.game, move.ply) for move in moves]).T
    bad_games, first = np.unique(games[drops > 0], return_index=True)
    first_plies = plies[drops > 0][first]
    table = Table("plies", "moves in positions not lost", "mistakes", "first mistakes", title=f"{len(records)} games")
    for start in range(options.opening_plies, plies.max() + 1, options.plies):
        last = start + options.plies - 1
        of = [plies[exact.results >= 0], plies[drops > 0], first_plies]
        table.add_row(f"{start} to {last}", *(str(((start <= each) & (each <= last)).sum()) for each in of))
    console = Console(soft_wrap=True)
    console.print(table)
    console.print(f"{(drops > 0).sum()} mistakes in {len(bad_games)} games give away {drops.sum() / 2:g} points")
    if options.network and len(bad_games):
        agent = load(options.network, board=records[0].board)
        delays = plies_until_noticed(moves, drops, wrong_values(agent, states, exact))
        quartiles = ", ".join(f"{each:g}" for each in np.quantile(delays, (0.25, 0.5, 0.75), method="lower"))
        console.print(f"plies until its value shows the last mistake of a game, quartiles: {quartiles}")


if __name__ == "__main__":
    main()
