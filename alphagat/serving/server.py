"""Builds and runs the server of `alphagat play` and `alphagat watch`."""

import socket
import sys
import time
from pathlib import Path
from typing import Any

from alphagat.runs.folder import read_config
from alphagat.runs.saved_checkpoints import list_steps
from alphagat.runtime import terminal
from alphagat.serving import app, http_server
from alphagat.serving.hosts import AllowedHosts, is_loopback, normalized
from alphagat.serving.live_run import LiveRun
from alphagat.serving.roster import Roster
from alphagat.serving.service import BatchService

PLAY, WATCH = "Open {} in a browser to play (Ctrl-C to stop)\n", "Open {}/watch.html in a browser (Ctrl-C to stop)\n"
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # by a host for all addresses, the loopback address
WAIT_S = 1.0  # between looks for the first checkpoint


def run_server(options: Any, listener: socket.socket, watched: Path | None = None) -> None:
    """Serves until interrupted.

    Args:
      listener: the socket of the server.
      watched: the folder of the run that the live view shows, the only source; waits for its first checkpoint.

    Raises:
      KeyboardInterrupt: always, at the end.
      UserError: a network or flag is invalid.
      ServiceError: the evaluation thread has failed.
    """
    if watched:
        _wait_for_checkpoint(watched)
    with terminal.status("loading the networks"):
        roster = Roster(options.sources, options.board)
    with BatchService(
        roster.prepare, max_batch=options.max_batch, max_wait_ms=options.max_wait_ms, max_queue=options.max_queue
    ) as service:
        service.prepare_ahead([roster.program(roster.default, "", options.simulations)])  # before the first request
        host, port = listener.getsockname()[:2]
        hosts = AllowedHosts(frozenset(map(normalized, options.allowed_hosts)), any_address=not is_loopback(host))
        live_run = LiveRun(watched, roster, options.board) if watched else None
        web_app = app.make_app(roster, service, options.simulations, hosts, live_run)
        sys.stdout.write((WATCH if watched else PLAY).format(_address(host, port)))
        if host in ANY:
            sys.stdout.write(f"It listens on all addresses of this machine, on port {port}\n")
        sys.stdout.flush()
        http_server.make_server(web_app, service).run(sockets=[listener])
        service.check()
    raise KeyboardInterrupt  # only a signal ends the server, also where the shell has made Python ignore Ctrl-C


def _address(host: str, port: int) -> str:
    """Returns the address for a browser on this machine; not all browsers open `0.0.0.0` or `::`."""
    reached = ANY.get(host, host)
    return f"http://{f'[{reached}]' if ':' in reached else reached}:{port}"


def _wait_for_checkpoint(folder: Path) -> None:
    read_config(folder)  # raises UserError if there is no run
    if not list_steps(folder):
        sys.stdout.write(f"{folder} has no checkpoint yet; waiting for the first\n")
        sys.stdout.flush()
        while not list_steps(folder):
            time.sleep(WAIT_S)
