"""Analysis by JSON lines, in the manner of KataGo's analysis engine: many positions at a time.

A query is one line:

    {"id": "q1", "board": "hex:5", "moves": ["c3", "b2"], "analyzeTurns": [1, 2], "maxVisits": 100}

- `id`: a string; the answers have it.
- `board`: any of the family of the player's boards; default: the one it was started with.
- `moves`: names, or pairs of colour and name as in GTP (`["B", "c3"]`); from the first position.
- `analyzeTurns`: after how many moves; default: after all.
- `maxVisits`: of the search; it makes the largest power of two that is not more, or the number that it was started with
  (the default), so that few programs are compiled. 0: the network alone.

Each turn is answered as it is done, whatever the order of the queries:

    {"id": "q1", "turnNumber": 2, "rootInfo": {"currentPlayer": "B", "visits": 64, "winrate": 0.61, "rawWinrate": 0.57},
     "moveInfos": [{"move": "d2", "order": 0, "visits": 40, "winrate": 0.63, "prior": 0.21, "pv": ["d2", "b4"]}, ...]}

`winrate` is (1 + value) / 2 for the player to move, after the search, and `rawWinrate` before it. A mistake is answered
by `{"id": "q1", "error": "...", "field": "moves"}`, without what is not known.
"""

import collections
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO

import jax
import numpy as np

from alphagat.agents.agent import Agent
from alphagat.agents.analysis import Analysis, Analyzer
from alphagat.errors import UserError
from alphagat.evaluation.live_game import IllegalMoveError
from alphagat.games.base import Game
from alphagat.serving import move_reports
from alphagat.serving.gtp_names import move_name
from alphagat.serving.line_reader import Lines
from alphagat.serving.turns import Turns

FIELDS = ("id", "board", "moves", "analyzeTurns", "maxVisits")
COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}


class Task(NamedTuple):
    """One position that waits: `state` is that of `game`, with numpy leaves."""

    query: str
    turn: int
    game: Game
    state: Any
    simulations: int


class QueryError(Exception):
    """A mistake in a query."""

    def __init__(self, message: str, field: str | None = None):
        super().__init__(message)
        self.field = field


class JsonServer:
    """Queries that wait, and who analyses them."""

    def __init__(
        self,
        open_agent: Callable[[str | None], Agent],
        *,
        simulations: int | None,
        max_simulations: int,
        batch_size: int,
    ):
        """Loads the player.

        Args:
          open_agent: loads the player for a board; None: the first of its run.
          simulations: of a query without `maxVisits`; None: those of the run's config.
          max_simulations: that a query may ask for.
          batch_size: positions that are analysed at once.

        Raises:
          UserError: there is no such player.
        """
        agent = open_agent(None)
        self._open_agent, self._agents, self._board = open_agent, {agent.game.name: agent}, agent.game.name
        self._simulations = simulations or agent.config.evaluation.num_simulations
        self._max_simulations, self._batch_size = max_simulations, batch_size
        self._analyzers: dict[tuple[str, int], Analyzer] = {}
        self._tasks: collections.deque[Task] = collections.deque()

    def serve(self, source: TextIO, out: TextIO) -> None:
        """Answers the queries of `source`, one in each line, until it ends and all are answered."""
        lines = Lines(source)
        while self._tasks or lines.peek() is not None:
            while lines.has_more() and (line := lines.peek()) is not None:
                lines.skip()
                if line.strip():
                    self._tasks.extend(self._read(line, out))
            if self._tasks:
                self._answer_batch(out)

    def _read(self, line: str, out: TextIO) -> list[Task]:
        """Returns the tasks of a query; a mistake is answered, and there are none."""
        query: Any = None
        try:
            query = _parse(line)
            return self._tasks_of(query)
        except QueryError as error:
            known = {"id": query["id"]} if isinstance(query, dict) and isinstance(query.get("id"), str) else {}
            field = {} if error.field is None else {"field": error.field}
            _write(out, {**known, "error": " ".join(str(error).split()), **field})
            return []

    def _tasks_of(self, query: dict[str, Any]) -> list[Task]:
        for name in query:
            if name not in FIELDS:
                raise QueryError(f"there is no such field; take some of {', '.join(FIELDS)}", name)
        if not isinstance(query.get("id"), str):
            raise QueryError("the id has to be a string", "id")
        agent = self._agent(query.get("board", self._board))
        moves = query.get("moves", [])
        if not isinstance(moves, list):
            raise QueryError("want a list of moves", "moves")
        turns = query.get("analyzeTurns", [len(moves)])
        if not isinstance(turns, list) or not all(_is_int(turn) and 0 <= turn <= len(moves) for turn in turns):
            raise QueryError(f"want a list of whole numbers from 0 to {len(moves)}, all the moves", "analyzeTurns")
        states = _play(agent.game, moves)
        simulations = self._rounded(query.get("maxVisits", self._simulations))
        for turn in turns:
            if states[turn].terminated:
                raise QueryError(f"the game is over after {turn} moves", "analyzeTurns")
        return [Task(query["id"], turn, agent.game, states[turn], simulations) for turn in turns]

    def _agent(self, board: Any) -> Agent:
        try:
            if board not in self._agents:
                self._agents[board] = self._open_agent(str(board))
        except (UserError, TypeError) as error:
            raise QueryError(str(error), "board") from error
        return self._agents[board]

    def _rounded(self, visits: Any) -> int:
        if not _is_int(visits) or not 0 <= visits <= self._max_simulations:
            raise QueryError(f"want a whole number from 0 to {self._max_simulations}", "maxVisits")
        return visits if visits in (0, self._simulations) else 2 ** (visits.bit_length() - 1)

    def _answer_batch(self, out: TextIO) -> None:
        """Answers the first of the tasks, and as many like it as there is room for in one call of the device."""
        first = self._tasks[0]
        alike = [task for task in self._tasks if (task.game, task.simulations) == (first.game, first.simulations)]
        batch = alike[: self._batch_size]
        taken = set(map(id, batch))
        self._tasks = collections.deque(task for task in self._tasks if id(task) not in taken)
        size = 1 if len(batch) == 1 else self._batch_size  # two programs for each number of simulations
        padded = [*batch, *[first] * (size - len(batch))]
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *(task.state for task in padded))
        analysis = self._analyzer(first)(states, jax.random.key(0))
        for row, task in enumerate(batch):
            _write(out, describe(task, jax.tree.map(lambda x, row=row: x[row], analysis)))

    def _analyzer(self, task: Task) -> Analyzer:
        name = task.game.name, task.simulations
        if name not in self._analyzers:
            self._analyzers[name] = Analyzer(self._agents[task.game.name], task.simulations)
        return self._analyzers[name]


def describe(task: Task, analysis: Analysis) -> dict[str, Any]:
    """Returns the answer for one position (an `Analysis` without `[B]`)."""
    moves = move_reports.ranked_moves(task.game, task.state, analysis)
    return {
        "id": task.query,
        "turnNumber": task.turn,
        "rootInfo": {
            "currentPlayer": "BW"[int(task.state.current_player)],
            "visits": int(analysis.visits.sum()),
            "winrate": round(move_reports.winrate(float(analysis.value)), 6),
            "rawWinrate": round(move_reports.winrate(float(analysis.network_value)), 6),
        },
        "moveInfos": [
            {
                "move": move.name,
                "order": move.order,
                "visits": move.visits,
                "winrate": round(move_reports.winrate(move.value), 6),
                "prior": round(move.prior, 6),
                "pv": list(move.line),
            }
            for move in moves
        ],
    }


def _parse(line: str) -> dict[str, Any]:
    try:
        query = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise QueryError(f"this is no JSON: {error}") from error
    if not isinstance(query, dict):
        raise QueryError("want a JSON object in each line")
    return query


def _play(game: Game, moves: list[Any]) -> list[Any]:
    """Returns the state before each move and after the last."""
    try:
        turns = Turns(game)
    except UserError as error:
        raise QueryError(str(error), "board") from error
    states = [turns.position.state]
    for number, move in enumerate(moves):
        colour, name = move if isinstance(move, list) and len(move) == 2 else (None, move)
        if not isinstance(name, str) or (colour is not None and str(colour).lower() not in COLOURS):
            raise QueryError(f"move {number} is {move!r}; want a name, or a pair such as ['B', 'c3']", "moves")
        try:
            if colour is None:
                turns.play(move_name(game, name))
            else:
                turns.play_for(COLOURS[str(colour).lower()], move_name(game, name))
        except IllegalMoveError as error:
            raise QueryError(f"move {number}: {error}", "moves") from error
        states.append(turns.position.state)
    return states


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _write(out: TextIO, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()
