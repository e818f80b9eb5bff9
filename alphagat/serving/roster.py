"""The boards that a server offers, and the networks that play them."""

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from alphagat.agents.agent import Agent, load
from alphagat.agents.analysis import Analyzer
from alphagat.agents.attention import has_attention, make_attention
from alphagat.agents.weight_files import shipped_names
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.network_traits import NETWORK_TRAITS
from alphagat.serving.playthrough import Playthroughs

# What is offered besides the boards of the run, by family: a run plays those whose nodes are of kinds that it knows.
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
    """What the evaluation service evaluates: analyses with so many simulations, or attention (None)."""

    board: str
    num_simulations: int | None


@dataclasses.dataclass(frozen=True, eq=False)
class BoardSession:
    """One board, and who plays it.

    Attributes:
      agent: the network.
      games: replays games on it.
    """

    agent: Agent
    games: Playthroughs

    @property
    def game(self) -> Game:
        return self.agent.game

    @functools.cached_property
    def has_attention(self) -> bool:
        return has_attention(self.agent)


class Roster:
    """Boards by name, opened when first asked for; any thread may call it.

    Attributes:
      boards: the names, those of a family together.
      default: the one to begin with.
    """

    def __init__(self, source: str | None, board: str | None = None):
        """Looks through the networks without reading parameters.

        Args:
          source: what `alphagat.load` reads; None: all networks that come with the package.
          board: to be offered in any case, and to begin with; None: the first of the network's run.

        Raises:
          UserError: there is no such network, or it does not play `board`.
        """
        agents = {name: load(name) for name in ([source] if source else shipped_names())}
        self._sources = {each: name for name, agent in agents.items() for each in _boards(agent)}
        self.default = board or next(iter(agents.values())).config.boards[0]
        if board and board not in self._sources:
            self._sources[board] = source or _shipped_for(board)
            load(self._sources[board], board=board)  # refuses a board of another family
        self.boards = tuple(self._sources)
        self._lock, self._sessions = threading.Lock(), {}

    def session(self, board: str) -> BoardSession:
        """Opens a board. Raises UserError for one that is not offered."""
        if board not in self._sources:
            raise UserError(f"board {board[:40]}: it is not played here; take one of {', '.join(self.boards)}")
        with self._lock:
            if board not in self._sessions:
                agent = load(self._sources[board], board=board)
                self._sessions[board] = BoardSession(agent, Playthroughs(agent.game))
            return self._sessions[board]

    @functools.lru_cache(maxsize=256)  # noqa: B019 (a roster lives as long as its server)
    def prepare(self, program: Program) -> Callable[[Any], Any]:
        """Returns the evaluation of `[B]` states that a program stands for: an `Analysis`, or attention weights."""
        agent = self.session(program.board).agent
        if program.num_simulations is None:
            return make_attention(agent)
        analyze = Analyzer(agent, program.num_simulations)
        return lambda states: analyze(states, jax.random.key(0))


def _boards(agent: Agent) -> list[str]:
    """Returns the boards that a network can play with what it has learned, those of its run among them."""
    own = [make_game(name) for name in agent.config.boards]
    kinds = {kind for game in own for kind in game.topology.node_kinds.tolist()}
    offered = [make_game(name) for name in MENU.get(own[0].topology.vocabulary.family, ())]
    if not NETWORK_TRAITS[agent.config.network.name].plays_any_size:
        offered = []
    fit = [game.name for game in offered if set(game.topology.node_kinds.tolist()) == kinds]
    return [*fit, *(game.name for game in own if game.name not in fit)]


def _shipped_for(board: str) -> str:
    """Returns the network of the package that plays a board."""
    family = make_game(board).topology.vocabulary.family
    for name in shipped_names():
        if load(name).game.topology.vocabulary.family == family:
            return name
    raise UserError(f"--board {board}: no network that comes with the package plays it; name a run by --workdir")
