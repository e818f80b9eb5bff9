"""Decides which boards a server offers, and which networks play each."""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagat.agents.agent import Agent, load
from alphagat.agents.analysis import Analyzer
from alphagat.agents.attention import attention_blocks, make_attention
from alphagat.agents.compatibility import differing_fields
from alphagat.agents.sources import SHIPPED, find_run, node_kinds, resolve, shipped_network_for
from alphagat.agents.weight_files import shipped_names
from alphagat.config import Config, NetworkConfig
from alphagat.errors import ServiceError, UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.batches import batch_of_one
from alphagat.games.states import first_state
from alphagat.network_traits import NETWORK_TRAITS
from alphagat.serving.playthrough import Playthroughs

DEFAULT_BOARD = "connect_four"
RUNS = Path("runs")  # the folder whose runs are offered beside the shipped networks
# By family, the boards offered besides those of the run. A run plays a board whose node kinds it trained on.
MENU = {
    "hex": tuple(f"hex:{size}" for size in (3, 4, 5, 6, 7, 8, 9, 10, 11, 13)),
    "mnk": ("tic_tac_toe", "connect_four", "gomoku:9", "gomoku:15", "mnk:5x6x4:gravity", "mnk:7x8x4:gravity"),
    "othello": tuple(f"othello:{size}" for size in (4, 6, 8, 10)),
    "breakthrough": tuple(f"breakthrough:{size}" for size in (5, 6, 7, 8)),
    "go": tuple(f"go:{size}" for size in (5, 7, 9, 13, 19)),
    "chess": ("chess", "gardner_chess"),
    "2048": ("2048:3", "2048", "2048:5"),
    "tsp": ("tsp:10", "tsp:20", "tsp:50"),
}


class Program(NamedTuple):
    """Names an evaluation to compile: a board, a player of it, and the simulations.

    Attributes:
      num_simulations: of the analysis of a position; None: its attention weights.
    """

    board: str
    player: str
    num_simulations: int | None


class Offer(NamedTuple):
    """A network on offer: the config of its run, and the boards that it plays."""

    config: Config
    boards: list[str]


@dataclasses.dataclass(frozen=True, eq=False)
class BoardSession:
    """One board, and the replay of its games."""

    game: Game
    games: Playthroughs


class Roster:
    """Opens boards and their players by name, each once, at its first use; thread-safe.

    A player is named by its source, but a shipped network by `SHIPPED`, unless `sources` name several.

    Attributes:
      boards: the names on offer, grouped by family.
      default: the board shown first.
    """

    def __init__(self, sources: Sequence[str] = (), board: str | None = None):
        """Reads the configs of the networks, and opens the default board.

        Args:
          sources: trained networks (`agents.sources.resolve`); none: all shipped networks, and the runs in `RUNS`.
          board: the default board, offered even if it is not on the menu; None: the first of the first network's run,
            or `DEFAULT_BOARD` without `sources`.

        Raises:
          UserError: there is no such network, or none plays `board`.
        """
        self._offers, self.default = _find_offers(sources, board)
        self._sources = _by_board(self._offers, self.default, are_chosen=bool(sources))
        self.boards = tuple(self._sources)
        # Their entries are never removed, and are read without the locks, so that no reader waits for a load.
        self._sessions: dict[str, BoardSession] = {}
        self._agents: dict[tuple[str, str], Agent] = {}  # by board and player
        self._opening, self._loading = threading.Lock(), threading.Lock()
        self.agent(self.default, self.players(self.default)[0])  # refuses a damaged file, or another family's board

    def players(self, board: str) -> tuple[str, ...]:
        """Returns the names of the players of a board, the default one first. Raises UserError if it is not offered."""
        if board not in self._sources:
            raise UserError(f"board {board[:40]}: this server does not offer it; use one of {', '.join(self.boards)}")
        return tuple(self._sources[board])

    def session(self, board: str) -> BoardSession:
        """Opens a board. Raises UserError if the board is not offered."""
        self.players(board)
        if board not in self._sessions:
            with self._opening:
                if board not in self._sessions:
                    game = make_game(board)
                    self._sessions[board] = BoardSession(game, Playthroughs(game))
        return self._sessions[board]

    def program(self, board: str, player: str, num_simulations: int | None) -> Program:
        """Returns the program of a player, "" for the default one.

        Raises:
          UserError: the board or player is not offered, or its network has no attention to show.
        """
        players = self.players(board)
        name = player or players[0]
        if name not in players:
            raise UserError(f"player {name[:80]}: it does not play {board} here; use one of {', '.join(players)}")
        if num_simulations is None and not attention_blocks(self.network(board, name)):
            raise UserError(f"board {board}: the network of {name} has no attention; choose another network")
        return Program(board, name, num_simulations)

    def network(self, board: str, player: str) -> NetworkConfig:
        """Returns the config of a player's network."""
        return self._offers[self._sources[board][player]].config.network

    def agent(self, board: str, player: str) -> Agent:
        """Loads a player of a board. Raises UserError if its parameters cannot be read."""
        if (board, player) not in self._agents:
            with self._loading:
                if (board, player) not in self._agents:
                    self._agents[board, player] = load(self._sources[board][player], board=board)
        return self._agents[board, player]

    def iteration(self) -> int:
        """Returns the iteration of the first player of the default board."""
        return self.agent(self.default, self.players(self.default)[0]).iteration

    def refresh(self) -> None:
        """Replaces the loaded agents by those of the newest checkpoints.

        Raises:
          UserError: a checkpoint cannot be read.
          ServiceError: a run was started anew, with a network that the compiled programs do not fit, or with boards
            that are not offered.
        """
        with self._loading:  # a load that has begun could store an older checkpoint later
            for board, name in list(self._agents):
                source = self._sources[board][name]
                config = resolve(source, board=board).config
                if differing_fields(config.network, self._agents[board, name].config.network):
                    raise ServiceError(f"{name} now has a different network; restart the command")
                if not all(name in self._sources.get(each, ()) for each in config.boards):
                    raise ServiceError(f"{name} now has different boards; restart the command")
                self._agents[board, name] = load(source, board=board)

    def prepare(self, program: Program) -> Callable[[Any], Any]:
        """Compiles the function from `[B]` states to an `Analysis`, or to attention weights, for single states.

        The function uses the parameters that the player has at the time of a call.
        """
        board, player, simulations = program
        agent = self.agent(board, player)
        compiled = _attention(agent) if simulations is None else _analysis(agent, simulations)

        def evaluate(states: Any) -> Any:
            return compiled(self.agent(board, player).params, states)

        evaluate(batch_of_one(first_state(agent.game)))
        return evaluate


def _attention(agent: Agent) -> Callable[[Any, Any], Any]:
    attend = make_attention(agent)
    return lambda params, states: np.asarray(attend(params, states))


def _analysis(agent: Agent, num_simulations: int) -> Callable[[Any, Any], Any]:
    analyze = Analyzer(agent, num_simulations)
    return lambda params, states: analyze(states, jax.random.key(0), params)


def _find_offers(sources: Sequence[str], board: str | None) -> tuple[dict[str, Offer], str]:
    """Returns the networks on offer, by source, and the default board."""
    if not sources:
        return _shipped() | _runs(), board or DEFAULT_BOARD
    offers = {source: _offer(resolve(source, board=board).config) for source in sources}
    return offers, board or offers[sources[0]].config.boards[0]


def _by_board(offers: dict[str, Offer], default: str, *, are_chosen: bool) -> dict[str, dict[str, str]]:
    """Returns the sources by board and player; one of them plays the default board.

    Args:
      are_chosen: whether the user named the networks; then each plays all its boards, and several shipped networks
        keep their names.
    """
    shipped = offers.keys() & {SHIPPED, *shipped_names()}
    if are_chosen and len(shipped) > 1:
        shipped = set()
    names = {source: SHIPPED if source in shipped else source for source in offers}
    found: dict[str, dict[str, str]] = {}
    for source, offer in offers.items():
        for board in offer.boards:
            if are_chosen or names[source] != SHIPPED or shipped_network_for(board) == source:
                found.setdefault(board, {})[names[source]] = source
    if default not in found:
        source = _first_of_family(offers, default) if are_chosen else shipped_network_for(default)
        found[default] = {names[source]: source}
    return found


def _shipped() -> dict[str, Offer]:
    """Returns the shipped networks, in the order of the menu."""
    found = {name: _offer(resolve(name).config) for name in shipped_names()}
    families = {name: make_game(offer.config.boards[0]).family for name, offer in found.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: list(MENU).index(families[name]))}


def _runs() -> dict[str, Offer]:
    """Returns the networks of the runs in `RUNS` that have a checkpoint and can be played."""
    found = {}
    for folder in sorted(RUNS.iterdir()) if RUNS.is_dir() else ():
        # A run may be unreadable, without a checkpoint, damaged, or of a board that is not available.
        with contextlib.suppress(UserError, OSError):
            if find_run(folder) is not None:
                found[str(folder)] = _offer(resolve(folder).config)
    return found


def _first_of_family(offers: dict[str, Offer], board: str) -> str:
    """Returns the first of the networks that plays boards of this family; without one, the first of all."""
    family = make_game(board).family
    fit = [source for source, offer in offers.items() if make_game(offer.config.boards[0]).family == family]
    return next(iter((*fit, *offers)))


def _offer(config: Config) -> Offer:
    """Finds the boards that a network plays: those of its run, and those of the menu with the same node kinds."""
    own = [make_game(name) for name in config.boards]
    kinds = node_kinds(own)
    offered = [make_game(name) for name in MENU.get(own[0].family, ())]
    if not NETWORK_TRAITS[config.network.name].plays_any_size:
        offered = []
    fit = [game.name for game in offered if node_kinds([game]) == kinds]
    return Offer(config, [*fit, *(game.name for game in own if game.name not in fit)])
