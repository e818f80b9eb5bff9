"""A match played in parts, so that what is known of it can be shown, written down and tested on the way."""

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

HOSTED_PART = 4  # openings played at once where an engine takes one game after the other


@dataclasses.dataclass(frozen=True, eq=False)
class Series:
    """Two players, and the openings that they are to play.

    Attributes:
      game: the board.
      player_a, player_b: of the devices or of the host.
      openings: each is played with both colours.
      key: of what players draw.
      mesh: the devices that share the games of players of the devices.
      report: gets a line for each game that an engine loses by what it does.
    """

    game: Game
    player_a: Player | Engine
    player_b: Player | Engine
    openings: Openings
    key: jax.Array
    mesh: Mesh
    report: Callable[[str], None]

    def play(self, part_size: int | None = None) -> Iterator[tuple[Openings, MatchResult]]:
        """Yields the results of so many openings at once; None: all where both play on the devices, else few."""
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
        return play_match(self.game, a, b, part, key, self.mesh)
