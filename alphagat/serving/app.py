"""The web page and its HTTP API.

The server keeps no games: each request tells board and moves, which are replayed by the rules. Whatever is wrong with
a request is answered with a status from 400 to 499 and one line, `{"error": ...}`; where too many wait, with 503.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException

from alphagat.errors import UserError
from alphagat.evaluation.game_files import GameRecord, file_ending, to_text
from alphagat.serving import messages
from alphagat.serving.messages import AnalysisRequest, GameRequest, RecordRequest
from alphagat.serving.middleware import Middleware
from alphagat.serving.playthrough import Playthrough
from alphagat.serving.roster import BoardSession, Program, Roster
from alphagat.serving.service import BatchService, Busy

PAGE = Path(__file__).parents[1] / "web"
STRENGTHS = (0, 16, 64, 256)  # simulations that are offered
TIMEOUT_S = 120.0  # for an answer; the first one on a board waits for its compilation


def make_app(roster: Roster, service: BatchService, simulations: int) -> FastAPI:
    """Returns the app; `service` evaluates `roster.prepare`, and is closed with the app.

    Args:
      simulations: of the network's moves unless the page asks for others.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.close)

    app = FastAPI(title="AlphaGAT", docs_url=None, redoc_url=None, lifespan=lifespan)
    _add_errors(app)
    _add_games(app, roster)
    _add_evaluations(app, roster, service, _strengths(simulations))

    @app.get("/api/info")
    def info() -> dict[str, Any]:
        """Tells what is played here."""
        return {
            "boards": roster.boards,
            "default": roster.default,
            "strengths": _strengths(simulations),
            "simulations": simulations,
        }

    @app.get("/api/metrics")
    def metrics() -> dict[str, Any]:
        """Tells what the evaluation service does: see `BatchService.metrics`."""
        return service.metrics()

    app.mount("/", StaticFiles(directory=PAGE, html=True))
    app.add_middleware(Middleware)
    return app


def _strengths(simulations: int) -> list[int]:
    return sorted({*STRENGTHS, simulations})


def _add_games(app: FastAPI, roster: Roster) -> None:
    @app.get("/api/boards/{board}")
    def board(board: str) -> dict[str, Any]:
        """Describes a board: who plays, and what its network can show."""
        session = roster.session(board)
        config = session.agent.config.network
        return {
            "board": board,
            "family": session.game.topology.vocabulary.family,
            "goal": session.game.goal,
            "players": [
                {"name": name, "colour": colour}
                for name, colour in session.game.player_colours[: session.game.num_players]
            ],
            "attention": [config.num_blocks, config.num_heads] if session.has_attention else None,
            "record": file_ending(session.game) if session.game.num_players == 2 else None,
        }

    @app.post("/api/position")
    def position(request: GameRequest) -> dict[str, Any]:
        """Describes the position that the moves lead to."""
        session, so_far = _replay(roster, request)
        last = None
        if so_far.steps:
            before = session.games.replay(request.seed, request.moves[:-1])
            last = messages.describe_move(session.game, before.state, so_far.steps[-1].action)
        return messages.describe_position(session.game, so_far, last)

    @app.post("/api/record")
    def record(request: RecordRequest) -> PlainTextResponse:
        """Writes the game as SGF, or as PGN for chess."""
        session, so_far = _replay(roster, request)
        if session.game.num_players != 2:
            raise UserError(f"board {request.board}: files of games are for two players")
        moves = tuple(step.name for step in so_far.steps)
        players = tuple(step.player for step in so_far.steps)
        outcome = int(np.sign(so_far.returns[0]))
        return PlainTextResponse(to_text(GameRecord(session.game.name, request.names, moves, players, outcome)))


def _add_evaluations(app: FastAPI, roster: Roster, service: BatchService, strengths: list[int]) -> None:
    async def evaluate(request: Request, session: BoardSession, so_far: Playthrough, simulations: int | None) -> Any:
        if so_far.state.terminated:
            raise UserError("the game is over; ask about an earlier position")
        answer = service.submit(Program(session.game.name, simulations), so_far.state)
        return await _answer_while_connected(request, asyncio.wrap_future(answer))

    @app.post("/api/analysis")
    async def analysis(request: Request, wanted: AnalysisRequest) -> dict[str, Any]:
        """Analyses the position that the moves lead to; `action` is the move to play."""
        if wanted.simulations not in strengths:
            raise UserError(f"simulations {wanted.simulations}: take one of {', '.join(map(str, strengths))}")
        session, so_far = await run_in_threadpool(_replay, roster, wanted)
        found = await evaluate(request, session, so_far, wanted.simulations)
        return await run_in_threadpool(_describe, session, wanted, so_far, found)

    @app.post("/api/attention")
    async def attention(request: Request, wanted: GameRequest) -> dict[str, Any]:
        """Tells what each head of each block attends to, in the position that the moves lead to."""
        session, so_far = await run_in_threadpool(_replay, roster, wanted)
        if not session.has_attention:
            raise UserError(f"board {wanted.board}: its network has no attention to show")
        weights = await evaluate(request, session, so_far, None)
        return messages.describe_attention(session.game, weights)


def _replay(roster: Roster, request: GameRequest) -> tuple[BoardSession, Playthrough]:
    session = roster.session(request.board)
    return session, session.games.replay(request.seed, request.moves)


def _describe(session: BoardSession, wanted: AnalysisRequest, so_far: Playthrough, found: Any) -> dict[str, Any]:
    line = messages.describe_line(session.games, session.game, wanted, found.variation)
    return messages.describe_analysis(session.game, so_far, found, line)


async def _answer_while_connected(request: Request, answer: asyncio.Future) -> Any:
    """Waits for an answer, and takes the question back when the client has gone or `TIMEOUT_S` are over."""
    gone = asyncio.ensure_future(request.receive())  # the body has been read: what comes next is the end
    try:
        await asyncio.wait({answer, gone}, timeout=TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise HTTPException(504 if not gone.done() else 499, "no answer in time; ask again")
    finally:
        gone.cancel()
        answer.cancel()


def _add_errors(app: FastAPI) -> None:
    def refuse(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return JSONResponse({"error": message}, status, headers)

    @app.exception_handler(UserError)
    async def user_error(_: Request, error: UserError) -> JSONResponse:
        return refuse(422, str(error))

    @app.exception_handler(Busy)
    async def busy(_: Request, error: Busy) -> JSONResponse:
        return refuse(503, f"{error}; ask again", {"Retry-After": str(error.retry_after_s)})

    @app.exception_handler(StarletteHTTPException)
    async def http_error(_: Request, error: StarletteHTTPException) -> JSONResponse:
        return refuse(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]  # without the input, which may be long
        where = ".".join(str(part) for part in first["loc"][1:])[:60]
        return refuse(422, f"{where or 'body'}: {first['msg'][:200]}")
