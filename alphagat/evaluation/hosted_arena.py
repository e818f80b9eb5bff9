"""Matches with at least one host player: games advance in lockstep; an engine moves in one game at a time."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from alphagat.evaluation import arena
from alphagat.evaluation.engines.base import Engine, EngineError
from alphagat.evaluation.live_game import Position
from alphagat.evaluation.match_result import FORFEIT_DTYPE, MatchResult
from alphagat.evaluation.move_names import History, replay
from alphagat.evaluation.openings import Openings
from alphagat.evaluation.players import Player, act_in_batches
from alphagat.games.base import Game
from alphagat.games.batches import count, take
from alphagat.wording import counted


def play_hosted_match(
    game: Game,
    player_a: Player | Engine,
    player_b: Player | Engine,
    openings: Openings,
    key: jax.Array,
    report: Callable[[str], None] = lambda line: None,
) -> MatchResult:
    """Plays two games from each of the `[N]` openings, and returns A's results, as `arena.play_match` does.

    A device player moves in batches of N games. An engine failure forfeits only its current game; `report` receives
    one line with the engine's last output.
    """
    num_openings = count(openings.states)
    games = jax.tree.map(np.array, arena.set_up(game, openings.states))
    histories = replay(game, np.tile(openings.actions, (2, 1)))
    forfeits = np.full(2 * num_openings, "", dtype=FORFEIT_DTYPE)
    number = 0
    while not games.done.all():
        round_key, number = jax.random.fold_in(key, number), number + 1
        actions, moves = np.zeros(2 * num_openings, np.int32), np.zeros(2 * num_openings, bool)
        a_moves = games.states.current_player == games.a_player
        for side, player in enumerate((player_a, player_b)):
            (rows,) = np.nonzero(~games.done & (a_moves == (side == 0)))
            if isinstance(player, Engine):
                chosen, failed = _ask(game, player, games.states, rows, histories, report)
            else:
                side_key = jax.random.fold_in(round_key, side)
                chosen, failed = act_in_batches(player, side_key, games.states, rows, num_openings), {}
            actions[rows], moves[rows] = chosen, True
            for row, end in failed.items():
                moves[row], forfeits[row] = False, end
                games.done[row], games.outcomes[row] = True, (-1, 1)[side]
        for row in np.flatnonzero(moves):
            histories[row].add(game, take(games.states, row), int(actions[row]))
        games = jax.tree.map(np.array, _compile_step(game)(games, actions, moves, round_key))
    outcomes, plies, actions, forfeits = (
        x.reshape(2, num_openings, *x.shape[1:]) for x in (games.outcomes, games.plies, games.actions, forfeits)
    )
    return MatchResult(outcomes, plies, actions, forfeits)


def _ask(
    game: Game,
    engine: Engine,
    states: Any,
    rows: np.ndarray,
    histories: list[History],
    report: Callable[[str], None],
) -> tuple[np.ndarray, dict[int, str]]:
    """Returns the engine's action in each of `rows`, and the forfeits by row."""
    actions, failed = np.zeros(len(rows), np.int32), {}
    for number, row in enumerate(rows):
        history = histories[row]
        position = Position(game, take(states, row), tuple(history.moves), tuple(history.players))
        try:
            actions[number] = engine.choose(position)
        except EngineError as error:
            failed[int(row)] = error.end
            report(f"{engine.name} forfeited a game after {counted(len(history.moves), 'ply')} ({error.end}): {error}")
    return actions, failed


@functools.lru_cache(maxsize=32)
def _compile_step(game: Game) -> Callable:
    return jax.jit(functools.partial(arena.step, game))
