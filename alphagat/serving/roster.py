"""Decides which boards a server offers, and which network plays each."""

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from alphagat.agents.agent import Agent, load
from alphagat.agents.analysis import Analyzer
from alphagat.agents.attention import has_attention, make_attention
from alphagat.agents.sources import resolve, shipped_network_for
from alphagat.agents.weight_files import shipped_names
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.network_traits import NETWORK_TRAITS
from alphagat.serving.playthrough import Playthroughs

# By family, the boards offered besides those of the run. A run plays a board whose node kinds it trained on.
MENU = {
    "hex": tuple(f"hex:{size}" for size in (3, 4, 5, 6, 7, 8, 9, 10, 11, 13)),
    "mnk": ("tic_tac_toe", "connect_four", "gomoku:9", "gomoku:15", "mnk:5x6x4:gravity", "mnk:7x8x4:gravity"),
    "othello": tuple(f"othello:{size}" for size in (4, 6, 8, 10)),
    "breakthrough": tuple(f"breakthrough:{size}" for size in (5, 6, 7, 8)),
    "go": tuple(f"go:{size}" for size in (5, 7, 9, 13, 19)),
    "chess": ("chess", "gardner_chess"),
    "2048": ("2048:3", "2048", "2048:5"),
}


class Program(NamedTuple):
    """A compiled evaluation: analysis with `num_simulations` per position, or attention weights if it is None."""

    board: str
    num_simulations: int | None


@dataclasses.dataclass(frozen=True, eq=False)
class BoardSession:
    """One board, its agent, and the replay of its games."""

    agent: Agent
    games: Playthroughs

    @property
    def game(self) -> Game:
        return self.agent.game

    @functools.cached_property
    def has_attention(self) -> bool:
        return has_attention(self.agent)


class Roster:
    """Opens boards by name, each once, at its first use; thread-safe.

    Attributes:
      boards: the names on offer, grouped by family.
      default: the board shown first.
    """

    def __init__(self, source: str | None, board: str | None = None):
        """Reads the configs of the networks, and opens the default board.

        Args:
          source: a trained network (`agents.sources.resolve`); None: all shipped networks.
          board: the default board, offered even if it is not on the menu; None: the first of the network's run.

        Raises:
          UserError: there is no such network, or it does not play `board`.
        """
        configs = {name: resolve(name, board=board).config for name in ([source] if source else shipped_names())}
        self._sources = {each: name for name, config in configs.items() for each in _boards(config)}
        self.default = board or next(iter(configs.values())).boards[0]
        if self.default not in self._sources:
            self._sources[self.default] = source or shipped_network_for(self.default)
        self.boards = tuple(self._sources)
        self._lock, self._sessions = threading.Lock(), {}
        self.session(self.default)  # refuses a damaged file, or a board of another family

    def session(self, board: str) -> BoardSession:
        """Opens a board. Raises UserError if the board is not offered."""
        if board not in self._sources:
            raise UserError(f"board {board[:40]}: it is not played here; use one of {', '.join(self.boards)}")
        with self._lock:
            if board not in self._sessions:
                agent = load(self._sources[board], board=board)
                self._sessions[board] = BoardSession(agent, Playthroughs(agent.game))
            return self._sessions[board]

    @functools.lru_cache(maxsize=256)  # noqa: B019 (a roster lives as long as its server)
    def prepare(self, program: Program) -> Callable[[Any], Any]:
        """Returns the function from `[B]` states to an `Analysis`, or to attention weights."""
        agent = self.session(program.board).agent
        if program.num_simulations is None:
            return make_attention(agent)
        analyze = Analyzer(agent, program.num_simulations)
        return lambda states: analyze(states, jax.random.key(0))


def _boards(config: Config) -> list[str]:
    """Returns the boards of the run, and those of the menu whose node kinds are the kinds that it trained on."""
    own = [make_game(name) for name in config.boards]
    kinds = {kind for game in own for kind in game.topology.node_kinds.tolist()}
    offered = [make_game(name) for name in MENU.get(own[0].topology.vocabulary.family, ())]
    if not NETWORK_TRAITS[config.network.name].plays_any_size:
        offered = []
    fit = [game.name for game in offered if set(game.topology.node_kinds.tolist()) == kinds]
    return [*fit, *(game.name for game in own if game.name not in fit)]
