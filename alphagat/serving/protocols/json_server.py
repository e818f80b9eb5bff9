"""Batched analysis over JSON lines, in the style of KataGo's analysis engine.

Each line is a query:

    {"id": "q1", "board": "hex:5", "moves": ["c3", "b2"], "analyzeTurns": [1, 2], "maxVisits": 100}

- `id`: a string, repeated in the answers.
- `board`: any board that the player plays; default: the board it was started with.
- `moves`: names, or pairs of colour and name as in GTP (`["B", "c3"]`), from the initial position. White moves first in
  chess, Black in all other games.
- `analyzeTurns`: the positions to analyze, as numbers of moves; default: after all moves.
- `maxVisits`: simulations of the search, rounded down to a power of two to limit the number of compiled programs;
  default: the number the server was started with, not rounded. 0: the network alone.

Answers come as soon as they are ready, in any order:

    {"id": "q1", "turnNumber": 2, "rootInfo": {"currentPlayer": "B", "visits": 64, "winrate": 0.61, "rawWinrate": 0.57},
     "moveInfos": [{"move": "d2", "order": 0, "visits": 40, "winrate": 0.63, "prior": 0.21, "pv": ["d2", "b4"]}, ...]}

`winrate` is (1 + value) / 2 for the player to move, from the value after the search; `rawWinrate` is the same from the
value before it. The answer to an invalid query is `{"id": "q1", "error": "...", "field": "moves"}`, without `id` or
`field` if unknown. A search that fails is answered by `{"id": "q1", "turnNumber": 2, "error": "..."}`.
"""

import collections
import json
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO

import jax

from alphagat import bounded_json
from alphagat.agents.agent import Agent
from alphagat.agents.analysis import Analysis, Analyzer
from alphagat.errors import UserError, internal_error
from alphagat.evaluation.live_game import IllegalMoveError
from alphagat.games.base import Game
from alphagat.games.batches import stack, take
from alphagat.games.states import moves_determine_positions
from alphagat.runtime import terminal
from alphagat.serving.protocols import move_reports
from alphagat.serving.protocols.gtp_names import colours, move_name, player_of
from alphagat.serving.protocols.line_reader import MAX_LINE, Lines
from alphagat.serving.protocols.turns import Turns

FIELDS = ("id", "board", "moves", "analyzeTurns", "maxVisits")
READ_AHEAD = 4  # batches that wait before no more queries are read: enough to fill batches of mixed queries


class Task(NamedTuple):
    """Holds one queued position; `state` has numpy leaves."""

    query: str
    turn: int
    game: Game
    state: Any
    simulations: int


class QueryError(Exception):
    """Reports a mistake in a query; `field` is the invalid field, or None if unknown."""

    def __init__(self, message: str, field: str | None = None):
        super().__init__(message)
        self.field = field


class JsonServer:
    """Queues and analyzes positions."""

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
          open_agent: loads the player for a board; None: the first board of its run.
          simulations: default of `maxVisits`; None: the number set in the run's config.
          max_simulations: largest valid `maxVisits`, or the default if that is larger.
          batch_size: positions per batch.

        Raises:
          UserError: the player does not exist, or its game is not for two players without chance.
        """
        agent = _checked(open_agent(None))
        self._open_agent, self._agents, self._board = open_agent, {agent.game.name: agent}, agent.game.name
        self._simulations = simulations or agent.config.evaluation.num_simulations
        self._max_simulations, self._batch_size = max(max_simulations, self._simulations), batch_size
        self._analyzers: dict[tuple[str, int], Analyzer] = {}
        self._waiting: dict[tuple[str, int], collections.deque[Task]] = {}  # by board and simulations; none is empty

    def serve(self, source: TextIO, out: TextIO) -> None:
        """Answers the queries of `source`, one per line, until its end."""
        lines = Lines(source)
        while self._waiting or lines.peek() is not None:
            while self._has_room() and lines.has_more() and (line := lines.peek()) is not None:
                lines.skip()
                for task in self._read(line, out) if line.strip() else ():
                    self._waiting.setdefault((task.game.name, task.simulations), collections.deque()).append(task)
            if self._waiting:
                self._answer_batch(out)

    def _has_room(self) -> bool:
        return sum(map(len, self._waiting.values())) < READ_AHEAD * self._batch_size

    def _read(self, line: str, out: TextIO) -> list[Task]:
        """Returns the tasks of a query. Answers an invalid query with an error and returns no tasks."""
        query: Any = None
        try:
            query = _parse(line)
            return self._tasks_of(query)
        except QueryError as error:
            query_id = {"id": query["id"]} if isinstance(query, dict) and isinstance(query.get("id"), str) else {}
            field = {} if error.field is None else {"field": error.field}
            _write(out, {**query_id, "error": " ".join(str(error).split()), **field})
            return []

    def _tasks_of(self, query: dict[str, Any]) -> list[Task]:
        for name in query:
            if name not in FIELDS:
                raise QueryError(f"unknown field; the fields are {', '.join(FIELDS)}", name)
        if not isinstance(query.get("id"), str):
            raise QueryError("the id must be a string", "id")
        agent = self._agent(query.get("board", self._board))
        moves = query.get("moves", [])
        if not isinstance(moves, list):
            raise QueryError("expected a list of moves", "moves")
        turns = query.get("analyzeTurns", [len(moves)])
        if (
            not isinstance(turns, list)
            or not turns
            or not all(_is_int(turn) and 0 <= turn <= len(moves) for turn in turns)
        ):
            raise QueryError(f"expected one or more whole numbers from 0 to {len(moves)}, in a list", "analyzeTurns")
        repeated = next((turn for turn, number in collections.Counter(turns).items() if number > 1), None)
        if repeated is not None:  # or a short query could ask for any number of searches
            raise QueryError(f"{repeated} is repeated; give each number once", "analyzeTurns")
        states = _play(agent.game, moves)
        simulations = self._rounded(query.get("maxVisits", self._simulations))
        for turn in turns:
            if states[turn].terminated:
                raise QueryError(f"the game is over after {turn} moves", "analyzeTurns")
        return [Task(query["id"], turn, agent.game, states[turn], simulations) for turn in turns]

    def _agent(self, board: Any) -> Agent:
        if not isinstance(board, str):
            raise QueryError("expected the name of a board, such as 'hex:5'", "board")
        try:
            if board not in self._agents:
                self._agents[board] = _checked(self._open_agent(board))
        except UserError as error:
            raise QueryError(str(error), "board") from error
        return self._agents[board]

    def _rounded(self, visits: Any) -> int:
        if not _is_int(visits) or not 0 <= visits <= self._max_simulations:
            raise QueryError(f"expected a whole number from 0 to {self._max_simulations}", "maxVisits")
        return visits if visits in (0, self._simulations) else 2 ** (visits.bit_length() - 1)

    def _answer_batch(self, out: TextIO) -> None:
        """Answers a batch of one board and number of simulations; those that wait with others are next."""
        kind = next(iter(self._waiting))
        tasks = self._waiting.pop(kind)
        batch = [tasks.popleft() for _ in range(min(self._batch_size, len(tasks)))]
        if tasks:
            self._waiting[kind] = tasks
        size = 1 if len(batch) == 1 else self._batch_size  # two compiled programs per number of simulations
        padded = [*batch, *batch[:1] * (size - len(batch))]
        states = stack(task.state for task in padded)
        try:
            with terminal.status("analyzing"):  # the first batch also compiles
                analysis = self._analyzer(batch[0])(states, jax.random.key(0))
            answers = [describe(task, take(analysis, row)) for row, task in enumerate(batch)]
        except Exception as error:  # one failed batch must not end the others
            message = str(error) if isinstance(error, UserError) else internal_error(error)  # UserError: the memory
            answers = [{"id": task.query, "turnNumber": task.turn, "error": message} for task in batch]
        for answer in answers:
            _write(out, answer)

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
            "currentPlayer": colours(task.game)[int(task.state.current_player)][0].upper(),
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


def _checked(agent: Agent) -> Agent:
    """Returns the agent. Raises UserError unless its answers have a meaning: a `winrate` needs an opponent."""
    if not moves_determine_positions(agent.game):
        raise UserError(f"board {agent.game.name}: analysis is for two-player games without chance; use another board")
    return agent


def _parse(line: str) -> dict[str, Any]:
    try:
        query = bounded_json.parse(line, MAX_LINE)
    except ValueError as error:
        raise QueryError(f"invalid JSON: {error}") from error
    if not isinstance(query, dict):
        raise QueryError("expected a JSON object in each line")
    return query


def _play(game: Game, moves: list[Any]) -> list[Any]:
    """Returns the state before each move and after the last."""
    turns = Turns(game)
    states = [turns.position.state]
    for number, move in enumerate(moves, start=1):
        colour, name = move if isinstance(move, list) and len(move) == 2 else (None, move)
        player = None if colour is None else player_of(game, str(colour))
        if not isinstance(name, str) or (colour is not None and player is None):
            raise QueryError(f"move {number} is {move!r}; expected a name, or a pair such as ['B', 'c3']", "moves")
        try:
            if player is None:
                turns.play(move_name(game, name))
            else:
                turns.play_for(player, move_name(game, name))
        except IllegalMoveError as error:
            raise QueryError(f"move {number}: {error}", "moves") from error
        states.append(turns.position.state)
    return states


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _write(out: TextIO, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()
