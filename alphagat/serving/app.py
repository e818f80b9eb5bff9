"""The web page and its HTTP API.

The server is stateless: each request names a board and its moves, and the server replays them. An invalid request gets
a status from 400 to 499 and one line, `{"error": ...}`. A failed evaluation gets 500, a full queue or a failed
evaluation thread 503.
"""

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException

from alphagat.agents.analysis import Analysis
from alphagat.agents.attention import attention_blocks
from alphagat.config import NetworkConfig
from alphagat.errors import ServiceError, UserError, first_line
from alphagat.evaluation.game_files import GameRecord, read_games, to_text
from alphagat.games.base import Game
from alphagat.games.states import moves_determine_positions
from alphagat.serving import limits, messages
from alphagat.serving.hosts import LOCAL, AllowedHosts
from alphagat.serving.live_run import LiveRun
from alphagat.serving.messages import AnalysisRequest, EvaluationRequest, GameRequest, RecordRequest
from alphagat.serving.middleware import FILES, Middleware
from alphagat.serving.playthrough import Lanes, Playthrough
from alphagat.serving.roster import BoardSession, Program, Roster
from alphagat.serving.service import BatchService, Busy

PAGE = Path(__file__).parents[1] / "web"
STRENGTHS = (0, 16, 64, 256)  # numbers of simulations on offer
MAX_GAMES = 100  # of a file


def make_app(
    roster: Roster,
    service: BatchService,
    simulations: int,
    hosts: AllowedHosts = LOCAL,
    live_run: LiveRun | None = None,
) -> FastAPI:
    """Returns the app.

    Args:
      service: evaluates the programs of `roster.prepare`; closed when the app shuts down.
      simulations: the default number per move.
      hosts: the host names under which the server is reached.
      live_run: the run of the live view; None: without a live view.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.close)

    strengths, lanes = sorted({*STRENGTHS, simulations}), Lanes()
    app = FastAPI(title="AlphaGAT", docs_url=None, redoc_url=None, lifespan=lifespan)
    _add_errors(app)
    _add_info(app, roster, simulations, strengths)
    _add_positions(app, roster, lanes)
    _add_files(app, roster, lanes)
    _add_preparation(app, roster, service, strengths)
    _add_evaluations(app, roster, service, strengths, lanes)
    _add_status(app, service, live_run)
    _add_heads(app)
    app.mount("/", StaticFiles(directory=PAGE, html=True))
    app.add_middleware(Middleware, hosts=hosts)
    return app


def _add_heads(app: FastAPI) -> None:
    """Answers HEAD at every path that answers GET; the server leaves out the body."""
    for route in list(app.routes):
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            app.add_api_route(route.path, route.endpoint, methods=["HEAD"], include_in_schema=False)


def _add_info(app: FastAPI, roster: Roster, simulations: int, strengths: list[int]) -> None:
    @app.get("/api/info")
    async def info() -> dict[str, Any]:
        """Returns the boards and strengths on offer, with their defaults, the longest game, and the largest file."""
        return {
            "boards": roster.boards,
            "default": roster.default,
            "strengths": strengths,
            "simulations": simulations,
            "max_moves": limits.MAX_MOVES,
            "max_file": limits.MAX_FILE,
        }


def _add_status(app: FastAPI, service: BatchService, live_run: LiveRun | None) -> None:
    @app.get("/api/run")
    def run() -> dict[str, Any]:
        """Returns the progress of the run of the live view, its latest results and its charts."""
        if live_run is None:
            raise HTTPException(404, "this server shows no run; start one with alphagat watch RUN")
        return live_run.describe()

    @app.get("/api/metrics")
    async def metrics() -> dict[str, Any]:
        """Returns the metrics of the evaluation service (`BatchService.metrics`)."""
        return service.metrics()

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Reports that evaluations are possible; status 503 if their thread has ended."""
        service.check()
        return {"evaluation": "alive"}


def _add_positions(app: FastAPI, roster: Roster, lanes: Lanes) -> None:
    @app.get("/api/boards/{board}")
    def board(board: str) -> dict[str, Any]:
        """Describes a board: the two sides, and the networks that play it."""
        networks = [
            {"player": player, "attention": _attention(roster.network(board, player))}
            for player in roster.players(board)
        ]
        return messages.describe_board(roster.session(board).game, networks)

    @app.post("/api/position")
    async def position(request: GameRequest) -> dict[str, Any]:
        """Describes the position after the moves."""
        return await lanes.run(_lane(roster, request.board), _describe_position, roster, request)


def _add_files(app: FastAPI, roster: Roster, lanes: Lanes) -> None:
    @app.post("/api/record")
    async def record(request: RecordRequest) -> PlainTextResponse:
        """Writes the game as SGF, or as PGN for chess."""
        session, playthrough = await lanes.run(_lane(roster, request.board), _replay, roster, request)
        if not moves_determine_positions(session.game):
            raise UserError(f"board {request.board}: game files hold only two-player games without chance")
        return PlainTextResponse(to_text(_record_of(session.game, playthrough, request)))

    @app.post(FILES)
    async def games(
        http: Request,
        board: Annotated[str, Query(max_length=limits.MAX_NAME)] = "",
        number: Annotated[int, Query(ge=0)] = 0,
    ) -> dict[str, Any]:
        """Reads the games of an SGF or PGN file, the body, at most `MAX_GAMES`.

        `board` is that of games that name none. The one with the requested number, from 0, which the page opens, is
        checked, and ends where our rules end it. The body is no JSON, because large JSON would occupy the event loop.
        """
        text = (await http.body()).decode(errors="replace")
        records = await lanes.run("files", read_games, text, board, MAX_GAMES)
        fields = ("board", "moves", "names", "outcome", "forfeit")
        found = [{name: getattr(each, name) for name in fields} for each in records]
        if records:
            if number >= len(records):
                raise UserError(f"number {number}: the file has games 0 to {len(records) - 1}")
            record = records[number]
            if record.board in roster.boards:
                found[number]["moves"] = await lanes.run(record.board, _moves_of, record, roster)
        return {"games": found}


def _moves_of(record: GameRecord, roster: Roster) -> Sequence[str]:
    """Returns the moves of a game on a board on offer, up to its end by the rules.

    Raises:
      UserError: a move is not legal, or of the other player, as after a handicap.
    """
    session = roster.session(record.board)
    steps = session.games.replay(0, record.moves, stops_at_end=True).steps
    for ply, (step, player) in enumerate(zip(steps, record.players)):
        if step.player != player:
            ours, theirs = (session.game.player_colours[each][0] for each in (step.player, player))
            raise UserError(
                f"move {ply + 1}, {step.name}, is by {theirs}, but it is the turn of {ours}; correct the file"
            )
    return record.moves[: len(steps)]


def _add_preparation(app: FastAPI, roster: Roster, service: BatchService, strengths: list[int]) -> None:
    @app.get("/api/preparation/{board}")
    def preparation(board: str, player: str = "", ahead: bool = True) -> dict[str, Any]:
        """Reports for each strength of a network on a board whether it is ready or has failed.

        Prepares them ahead, unless `ahead` is false. `elapsed` and `estimate` are in seconds, since a preparation began
        and of a whole one.
        """
        programs = [roster.program(board, player, simulations) for simulations in strengths]
        if ahead:
            attends = attention_blocks(roster.network(board, programs[0].player))
            service.prepare_ahead([*programs, *([programs[0]._replace(num_simulations=None)] if attends else [])])
        progress = [service.progress(program) for program in programs]
        return {
            "strengths": [
                {
                    "simulations": program.num_simulations,
                    "ready": each.is_ready,
                    "failed": each.has_failed,
                    "elapsed": round(each.elapsed_s, 1),
                }
                for program, each in zip(programs, progress)
            ],
            "estimate": round(service.estimate_s(), 1),
        }


def _add_evaluations(app: FastAPI, roster: Roster, service: BatchService, strengths: list[int], lanes: Lanes) -> None:
    async def evaluate(http: Request, program: Program, playthrough: Playthrough) -> Any:
        if playthrough.state.terminated:
            raise UserError("the game is over; ask about an earlier position")
        try:
            answer = service.submit(program, playthrough.state)
            return await _answer_while_connected(http, asyncio.wrap_future(answer))
        except (HTTPException, UserError, Busy, ServiceError):
            raise
        except Exception as error:  # of JAX, such as a lack of memory
            traceback.print_exception(error)
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise HTTPException(500, f"the evaluation failed with {reason}; choose another level") from error

    @app.post("/api/analysis")
    async def analysis(http: Request, request: AnalysisRequest) -> dict[str, Any]:
        """Analyzes the position after the moves; `action` is the move to play."""
        if request.simulations not in strengths:
            raise UserError(f"simulations {request.simulations}: use one of {', '.join(map(str, strengths))}")
        lane = _lane(roster, request.board)
        session, playthrough = await lanes.run(lane, _replay, roster, request)
        program = roster.program(request.board, request.player, request.simulations)
        result = await evaluate(http, program, playthrough)
        return await lanes.run(lane, _describe, session, request, playthrough, result)

    @app.post("/api/attention")
    async def attention(http: Request, request: EvaluationRequest) -> dict[str, Any]:
        """Returns the attention weights of each block and head in the position after the moves."""
        session, playthrough = await lanes.run(_lane(roster, request.board), _replay, roster, request)
        weights = await evaluate(http, roster.program(request.board, request.player, None), playthrough)
        return messages.describe_attention(session.game, weights)


def _record_of(game: Game, playthrough: Playthrough, request: RecordRequest) -> GameRecord:
    """Returns the game with its result: by the rules, or else the requested one."""
    moves = tuple(step.name for step in playthrough.steps)
    players = tuple(step.player for step in playthrough.steps)
    outcome, forfeit = request.outcome, request.forfeit
    if playthrough.state.terminated:
        outcome, forfeit = int(np.sign(playthrough.returns[0])), ""
    return GameRecord(game.name, request.names, moves, players, outcome, forfeit)


def _lane(roster: Roster, board: str) -> str:
    """Returns the lane of the replays on a board. Raises UserError if the board is not offered."""
    roster.players(board)
    return board


def _describe_position(roster: Roster, request: GameRequest) -> dict[str, Any]:
    session, playthrough = _replay(roster, request)
    last = None
    if playthrough.steps:
        before = session.games.replay(request.seed, request.moves[:-1])
        last = messages.describe_move(session.game, before.state, playthrough.steps[-1].action)
    return messages.describe_position(session.game, playthrough, last)


def _replay(roster: Roster, request: GameRequest) -> tuple[BoardSession, Playthrough]:
    session = roster.session(request.board)
    return session, session.games.replay(request.seed, request.moves)


def _attention(network: NetworkConfig) -> dict[str, Any] | None:
    """Describes the attention of a network; None without any."""
    blocks = attention_blocks(network)
    return {"blocks": blocks, "heads": network.num_heads} if blocks else None


def _describe(
    session: BoardSession, request: AnalysisRequest, playthrough: Playthrough, analysis: Analysis
) -> dict[str, Any]:
    line = messages.describe_line(session.games, session.game, request, analysis.variation)
    return messages.describe_analysis(session.game, playthrough, analysis, line)


async def _answer_while_connected(http: Request, answer: asyncio.Future) -> Any:
    """Awaits an answer. Cancels it when the client disconnects or after `limits.ANSWER_S`."""
    disconnect = asyncio.ensure_future(http.receive())  # the body is read, so the next message is the disconnect
    try:
        await asyncio.wait({answer, disconnect}, timeout=limits.ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise HTTPException(504 if not disconnect.done() else 499, "no answer in time; try again")
    finally:
        disconnect.cancel()
        answer.cancel()


def _add_errors(app: FastAPI) -> None:
    def refuse(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"error": message}, status, headers)

    @app.exception_handler(UserError)
    async def user_error(_: Request, error: UserError) -> JSONResponse:
        return refuse(422, str(error))

    @app.exception_handler(Busy)
    async def busy(_: Request, error: Busy) -> JSONResponse:
        return refuse(503, f"{error}; try again", {"Retry-After": str(error.retry_after_s)})

    @app.exception_handler(ServiceError)
    async def broken(_: Request, error: ServiceError) -> JSONResponse:
        return refuse(503, str(error))

    @app.exception_handler(StarletteHTTPException)
    async def http_error(_: Request, error: StarletteHTTPException) -> JSONResponse:
        return refuse(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]  # the answer omits the input, which may be long
        if first["type"] == "json_invalid":
            return refuse(422, f"body: it is not JSON from character {first['loc'][1] + 1} on; send a JSON object")
        where = ".".join(str(part) for part in first["loc"][1:])[:60]
        return refuse(422, f"{where or 'body'}: {first['msg'][:200]}")
