"""Where the web server listens, and the `Host` and `Origin` headers that it accepts.

A page of another site can send requests to this server, and with a host name that its owner points to this machine (DNS
rebinding) it can even read the answers. Such requests carry the name or the origin of that site.
"""

import errno
import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import NamedTuple

from alphagat.errors import UserError

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")  # in lower case, with an optional port
MAX_QUOTED = 60  # characters


class AllowedHosts(NamedTuple):
    """Accepts `localhost`, loopback addresses, and what the fields add.

    Attributes:
      names: further host names, as `normalized` returns them.
      any_address: accept every IP address. No name is involved, so there is nothing to rebind.
    """

    names: frozenset[str] = frozenset()
    any_address: bool = False

    def refusal(self, hosts: Sequence[str], origins: Sequence[str]) -> str | None:
        """Returns why a request with these `Host` and `Origin` headers is refused, or None if it is accepted."""
        host = hosts[0].lower() if len(hosts) == 1 else ""
        found = HOST.fullmatch(host)
        if found is None:
            return "the Host header is missing or invalid; send one, such as localhost"
        if not self._accepts(name := normalized(found[1].strip("[]"))):
            return f"host {name[:MAX_QUOTED]}: it is not allowed; start the server with --allowed_hosts and this name"
        if any(origin.lower() not in (f"http://{host}", f"https://{host}") for origin in origins):
            return f"origin {ascii(origins[0])[1:-1][:MAX_QUOTED]}: only pages of this server may send requests"
        return None

    def _accepts(self, name: str) -> bool:
        return name in {"localhost", *self.names} or is_loopback(name) or (self.any_address and _is_address(name))


LOCAL = AllowedHosts()


def normalized(name: str) -> str:
    """Returns a host name in lower case, without the dot at its end that marks it as complete."""
    return name.lower().rstrip(".")


def is_loopback(name: str) -> bool:
    """Returns whether `name` is an IP address of this machine only."""
    return _is_address(name) and ipaddress.ip_address(name).is_loopback


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


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
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise UserError(f"--host {host} --port {port}: {reason}; use another port, or --port 0") from error
        raise UserError(f"--host {host}: {reason}; use an address of this machine, such as 127.0.0.1") from error
