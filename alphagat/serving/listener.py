"""The socket of a server, opened before JAX is loaded, so that a port in use is reported at once."""

import socket

from alphagat.errors import UserError


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
