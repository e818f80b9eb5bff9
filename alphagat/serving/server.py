"""Builds and runs the server of `alphagat play`."""

import socket
import sys
from typing import Any

import jax

from alphagat.errors import UserError
from alphagat.games.states import first_state
from alphagat.serving import app, http_server
from alphagat.serving.hosts import AllowedHosts, is_loopback
from alphagat.serving.roster import Program, Roster
from alphagat.serving.service import BatchService


def run_server(options: Any) -> None:
    """Serves until interrupted.

    Raises:
      UserError: the port is in use, or a network or flag is invalid.
      ServiceError: the evaluation thread has failed.
    """
    roster = Roster(options.workdir, options.board)
    with (
        listen(options.host, options.port) as listener,
        BatchService(
            roster.prepare, max_batch=options.max_batch, max_wait_ms=options.max_wait_ms, max_queue=options.max_queue
        ) as service,
    ):
        # Compiles the default program before the first request.
        first = first_state(roster.session(roster.default).game)
        service.submit(Program(roster.default, options.simulations), jax.device_get(first))
        host, port = listener.getsockname()[:2]
        hosts = AllowedHosts(
            frozenset(name.lower() for name in options.allowed_hosts), any_address=not is_loopback(host)
        )
        web_app = app.make_app(roster, service, options.simulations, hosts)
        address = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"AlphaGAT plays at http://{address}:{port} (Ctrl-C ends it)\n")
        sys.stdout.flush()
        http_server.make_server(web_app, service).run(sockets=[listener])
        service.check()


def listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket; port 0 takes any free port. Raises UserError if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        host.encode("idna")  # inside `create_server` its error would leak a socket
        return socket.create_server((host, port), family=family)
    except UnicodeError as error:
        raise UserError(f"--host {host[:60]}: it is not a host name; use one such as 127.0.0.1") from error
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]  # drops the repeated address
        raise UserError(f"--host {host} --port {port}: {reason}; use another port, or --port 0") from error
