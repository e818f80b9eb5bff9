"""Matches played in parts, so that partial results can be shown, saved and tested."""

import dataclasses
from collections.abc import Callable, Iterator

import jax
from jax.sharding import Mesh

from alphagat.evaluation.arena import play_match
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.hosted_arena import play_hosted_match
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import Openings
from alphagat.evaluation.players import Player
from alphagat.games.base import Game

HOSTED_PART = 4  # openings per part if an engine plays


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """A match to be played.

    Attributes:
      game: the board.
      player_a, player_b: device players or engines.
      openings: each is played twice, with colours swapped.
      key: for the players' random choices.
      mesh: the devices over which games of device players are sharded.
      report: receives one line per forfeited game.
      progress: receives the number of games of the present part that are over; without an engine only.
    """

    game: Game
    player_a: Player | Engine
    player_b: Player | Engine
    openings: Openings
    key: jax.Array
    mesh: Mesh
    report: Callable[[str], None]
    progress: Callable[[int], None] | None = None

    def play(self, part_size: int | None = None) -> Iterator[tuple[Openings, MatchResult]]:
        """Yields results of `part_size` openings at a time; None: `HOSTED_PART` with an engine, else all."""
        num_openings = len(self.openings.actions)
        hosted = isinstance(self.player_a, Engine) or isinstance(self.player_b, Engine)
        size = part_size or (HOSTED_PART if hosted else num_openings)
        for start in range(0, num_openings, size):
            part = self.openings.take(slice(start, start + size))
            yield part, self._play(part, jax.random.fold_in(self.key, start))

    def _play(self, part: Openings, key: jax.Array) -> MatchResult:
        a, b = self.player_a, self.player_b
        if isinstance(a, Engine) or isinstance(b, Engine):
            return play_hosted_match(self.game, a, b, part, key, self.report)
        return play_match(self.game, a, b, part, key, self.mesh, self.progress)
