"""Moves told with the colour of who makes them, one command for each, by controllers that know other rules of turns.

Players take turns by the rules of the board. Where Othello makes a player pass, the pass may be left out. A white
stone first of all, on a board of Hex with the swap rule, is the one that is there after a swap: black played its mirror
image.
"""

import re

from alphagat.evaluation.live_game import IllegalMoveError, LiveGame
from alphagat.games.base import Game
from alphagat.games.hex import HexGame

NAMES = ("black", "white")


class Turns(LiveGame):
    """A game in which each command can be taken back, however many moves it has made."""

    def __init__(self, game: Game):
        super().__init__(game)
        self._lengths = [0]  # of the game before each command, and now

    def play_for(self, player: int, name: str) -> None:
        """Plays a move of player 0 or 1. Raises IllegalMoveError, and then nothing was played."""
        try:
            if isinstance(self.game, HexGame) and self.game.swap and player == 1 and not self.position.moves:
                self._play_swapped(name)
            else:
                self.give_turn(player)
                self.play(name)
        except IllegalMoveError:
            self._shorten(self._lengths[-1])
            raise
        self._lengths.append(len(self.position.moves))

    def give_turn(self, player: int) -> None:
        """Lets the opponent pass where the rules leave him nothing else. Raises IllegalMoveError: it is his turn."""
        if not self.is_over and self.position.player != player and list(self.position.legal_actions()) == ["pass"]:
            self.play("pass")
        self.check_turn(player)

    def check_turn(self, player: int) -> None:
        """Raises IllegalMoveError where it is the other player's turn."""
        if not self.is_over and self.position.player != player:
            raise IllegalMoveError(f"{NAMES[1 - player]} is to move")

    def undo(self) -> None:
        """Takes the last command back. Raises IllegalMoveError where there is none."""
        if len(self._lengths) == 1:
            raise IllegalMoveError("cannot undo")
        self._lengths.pop()
        self._shorten(self._lengths[-1])

    def _shorten(self, length: int) -> None:
        while len(self.position.moves) > length:
            super().undo()

    def _play_swapped(self, name: str) -> None:
        match = re.fullmatch("([a-z])([0-9]+)", name.lower())
        if match is None:
            raise IllegalMoveError(f"{name} is illegal here")
        self.play(f"{chr(ord('a') + int(match[2]) - 1)}{ord(match[1]) - ord('a') + 1}")
        self.play("swap")
