"""Replay of recorded games by the rules."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.game_files import GameRecord
from alphagat.games.base import Game
from alphagat.games.batches import chunks, compile_init, compile_step, concatenate, take

CHUNK = 512  # games per batch


class Replayed(NamedTuple):
    """The N positions of G games in which a move was made.

    Attributes:
      states: `[N]`.
      actions: `[N]` int32, the action played in each position.
      to_go: `[N]` int32, the number of later moves.
      games: `[N]` int32, the index of the game.
      ends: `[G]`, the state after the last move of each game.
      results: `[G]` float32, the final reward of player 0; NaN for unfinished games.
    """

    states: Any
    actions: np.ndarray
    to_go: np.ndarray
    games: np.ndarray
    ends: Any
    results: np.ndarray


def play_again(game: Game, records: Sequence[GameRecord], labels: Sequence[str]) -> Replayed:
    """Replays records of a deterministic board and returns their positions on the host.

    A game ends where the rules end it, even if its record goes on: elsewhere a draw may have to be claimed.

    Args:
      records: at least one, each with at least one move.
      labels: name each record in error messages.

    Raises:
      UserError: a move is illegal or made out of turn.
    """
    book = _Names(game)
    parts = []
    size = min(CHUNK, len(records))  # one shape, one program
    for rows, _ in chunks(len(records), size):
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        parts.append(_play_chunk(game, book, records[part], labels[part], size))
    starts = np.cumsum([0, *(len(part.results) for part in parts)])
    return Replayed(
        states=concatenate([part.states for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        to_go=np.concatenate([part.to_go for part in parts]),
        games=np.concatenate([part.games + start for part, start in zip(parts, starts)]).astype(np.int32),
        ends=concatenate([part.ends for part in parts]),
        results=np.concatenate([part.results for part in parts]),
    )


def _play_chunk(
    game: Game, book: "_Names", records: Sequence[GameRecord], labels: Sequence[str], size: int
) -> Replayed:
    """Replays the games in one batch, padded to `size`."""
    lengths = np.array([len(record.moves) for record in records])
    step, keys = compile_step(game), jax.random.split(jax.random.key(0), size)
    states = jax.device_get(compile_init(game)(keys))
    results = np.full(len(records), np.nan, np.float32)
    ends, end_rows = [], []
    kept: list[tuple[Any, np.ndarray, np.ndarray, np.ndarray]] = []
    for ply in range(lengths.max()):
        rows = np.flatnonzero(lengths > ply).tolist()
        if not rows:
            break
        actions = _find_actions(book, states, records, labels, rows, ply)
        kept.append((take(states, rows), actions[rows], np.full(len(rows), ply), np.array(rows)))
        states = jax.device_get(step(states, actions, keys))
        lengths = np.where(states.terminated[: len(records)], np.minimum(lengths, ply + 1), lengths)
        last = np.flatnonzero(lengths == ply + 1)
        ended = last[states.terminated[last]]
        results[ended] = states.rewards[ended, 0]
        ends.append(take(states, last))
        end_rows.append(last)
    positions, moves, plies, rows_played = zip(*kept)
    games = np.concatenate(rows_played)
    return Replayed(
        states=concatenate(positions),
        actions=np.concatenate(moves),
        to_go=(lengths[games] - 1 - np.concatenate(plies)).astype(np.int32),
        games=games,
        ends=take(concatenate(ends), np.argsort(np.concatenate(end_rows))),
        results=results,
    )


def _find_actions(
    book: "_Names", states: Any, records: Sequence[GameRecord], labels: Sequence[str], rows: list[int], ply: int
) -> np.ndarray:
    """Returns the actions of all `states` at `ply`, 0 outside of `rows`. Raises UserError if one breaks the rules."""
    # The mask of some games is computed from the state, as a JAX array, whose rows are slow to read one by one.
    legal, movers = np.asarray(states.legal_action_mask), np.asarray(states.current_player)
    actions = np.zeros(len(movers), np.int32)
    for row in rows:
        record, player = records[row], int(movers[row])
        actions[row] = book.find(states, row, player, legal[row], record.moves[ply])
        if actions[row] < 0 or record.players[ply] != player:
            raise UserError(f"{labels[row]}, move {ply + 1}: {_describe_mistake(record, ply, player)}")
    return actions


def _describe_mistake(record: GameRecord, ply: int, player: int) -> str:
    move = record.moves[ply]
    if record.players[ply] != player:
        return f"player {record.players[ply]} plays {move!r}, but it is the turn of player {player}"
    return f"{move!r} is not legal on {record.board}"


class _Names:
    """Looks up actions by name; names may depend on the player to move."""

    def __init__(self, game: Game):
        self._game, self._known = game, {}
        if game.has_fixed_names:
            names = [(name, action) for action, name in enumerate(game.action_names)]
            self._known = {(player, name): action for player in (0, 1) for name, action in names}

    def find(self, states: Any, row: int, player: int, legal: np.ndarray, name: str) -> int:
        """Returns the legal action of that name in state `row`, or -1."""
        if (player, name) not in self._known:
            actions = np.flatnonzero(legal)
            names = self._game.names_of(take(states, row), actions) if len(actions) else []
            self._known |= {(player, each): int(action) for each, action in zip(names, actions)}
        action = self._known.get((player, name), -1)
        return action if action >= 0 and legal[action] else -1
