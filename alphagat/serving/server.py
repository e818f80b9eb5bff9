"""Builds the server from the flags of `python -m alphagat.serve`, and runs it."""

import importlib
import socket
import sys
from typing import Any

import jax

from alphagat.errors import UserError
from alphagat.games.states import first_state
from alphagat.serving.roster import Program, Roster
from alphagat.serving.service import BatchService


def run_server(options: Any) -> None:
    """Serves until it is interrupted.

    Raises:
      UserError: FastAPI or uvicorn is not installed, the port is taken, or a network or a flag is wrong.
    """
    try:
        uvicorn, app = importlib.import_module("uvicorn"), importlib.import_module("alphagat.serving.app")
    except ImportError as error:
        raise UserError(f"serving needs {error.name}, not installed: pip install 'alphagat[serve]'") from error
    roster = Roster(options.workdir, options.board)
    with (
        listen(options.host, options.port) as listener,
        BatchService(
            roster.prepare, max_batch=options.max_batch, max_wait_ms=options.max_wait_ms, max_queue=options.max_queue
        ) as service,
    ):
        # The program that the first visitor needs is compiled while they open the page.
        first = first_state(roster.session(roster.default).game)
        service.submit(Program(roster.default, options.simulations), jax.device_get(first))
        config = uvicorn.Config(
            app.make_app(roster, service, options.simulations), log_level="warning", access_log=False, ws="none"
        )
        host, port = listener.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"AlphaGAT plays at http://{address}:{port} (Ctrl-C ends it)\n")
        sys.stdout.flush()
        uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """Opens a port, any free one for 0. Raises UserError where that is not to be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]  # without the address once more
        raise UserError(f"--host {host} --port {port}: {reason}; take another port, or --port 0") from error
