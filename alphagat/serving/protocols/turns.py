"""Plays moves given with a colour, one command each, as controllers send them.

Players alternate by the rules of the game, with three exceptions. A forced pass in Othello may be omitted. In Go, a
player may move twice in a row: the opponent passes in between, unless that pass would end the game. In Hex with the
swap rule, a white stone as the first move is the result of a swap: black played its mirror image, then white swapped.
"""

from collections.abc import Sequence

from alphagat.evaluation.live_game import IllegalMoveError, LiveGame, Position
from alphagat.games.base import Game
from alphagat.games.go import GoGame
from alphagat.games.hex import HexGame, mirrored
from alphagat.serving.protocols.gtp_names import colours


class Turns(LiveGame):
    """A game whose `undo` takes back a whole command, which may have made several moves."""

    def __init__(self, game: Game):
        super().__init__(game)
        self._lengths = [0]  # number of moves before each command, and now

    def play_for(self, player: int, name: str) -> None:
        """Plays a move of player 0 or 1. On IllegalMoveError the game is unchanged."""
        try:
            if isinstance(self.game, HexGame) and self.game.swap and player == 1 and not self.position.moves:
                self._play_swapped(name)
            else:
                self._give_turn(player)
                self.play(name)
        except IllegalMoveError:
            self._shorten(self._lengths[-1])
            raise
        self._lengths.append(len(self.position.moves))

    def place(self, names: Sequence[str]) -> None:
        """Plays stones of player 0 in a row, as one command. On IllegalMoveError the game is unchanged."""
        before = len(self._lengths)
        for name in names:
            try:
                self.play_for(0, name)
            except IllegalMoveError:
                del self._lengths[before:]
                self._shorten(self._lengths[-1])
                raise
        self._lengths[before:] = self._lengths[-1:]

    def _give_turn(self, player: int) -> None:
        """Plays the opponent's pass where it may be omitted. Raises IllegalMoveError if it is still another's turn."""
        if self.is_over or self.position.player == player:
            return
        is_go, other = isinstance(self.game, GoGame), colours(self.game)[1 - player]
        if is_go or list(self.position.legal_actions()) == ["pass"]:
            self.play("pass")
        if is_go and self.is_over:
            raise IllegalMoveError(f"{other} is to move, and its pass would end the game")
        if not self.is_over and self.position.player != player:
            raise IllegalMoveError(f"{other} is to move")

    def position_for(self, player: int) -> Position:
        """Returns the position in which a player moves, and leaves the game unchanged. Raises IllegalMoveError."""
        length = len(self.position.moves)
        try:
            self._give_turn(player)
            return self.position
        finally:
            self._shorten(length)

    def undo(self) -> None:
        """Undoes the last command. Raises IllegalMoveError if there is none."""
        if len(self._lengths) == 1:
            raise IllegalMoveError("cannot undo")
        self._lengths.pop()
        self._shorten(self._lengths[-1])

    def _shorten(self, length: int) -> None:
        while len(self.position.moves) > length:
            super().undo()

    def _play_swapped(self, name: str) -> None:
        cell = name.lower()
        if cell == "swap" or cell not in self.game.action_names:
            raise IllegalMoveError(f"{name} is illegal here")
        self.play(mirrored(cell))
        self.play("swap")
