"""Who may open the viewer: a check of every request before viser answers it."""

from __future__ import annotations

import http
import ipaddress
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from legged.errors import ArgumentError, MissingError, SimulationWarning, warn_caller

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_lock = threading.Lock()
Page = Callable[[str], tuple[int, str, str]]
"""Function of the text behind "?" of a request that returns (HTTP status, content type, content)."""


def _renew_lock() -> None:
    """Give a forked process a lock that no thread of its parent holds."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Gate:
    """The check of the requests of a server: address of the host, origin of the page, and a token in the path.

    A page of another site that the user has open can send requests to this machine, and a name of that site can be
    directed to it. The browser states the name in the header Host and the site in the header Origin, and the site does
    not know the token.

    Attributes:
        token: First part of the path of all requests; "" for none.
        is_closed: Whether the server was stopped. A browser opens connections before it needs them, and the server
            keeps those that it accepted: such a connection is then closed without an answer, upon which the browser
            connects again and reaches the server that now listens at the address.
        pages: Path of a page that is served beside viser's, such as "/drive" -> function of the text behind "?" that
            returns (HTTP status, content type, content).
    """

    def __init__(self, host: str, token: str):
        self.token = token
        self.is_closed = False
        self.pages: dict[str, Page] = {}
        self._is_open = not _is_loopback(host)
        name = socket.gethostname().lower()
        own = (name, name.partition(".")[0], f"{name}.local", host.lower()) if self._is_open else ()
        self._names = (*_LOOPBACK, *own)

    def refusal(self, request: Any) -> str:
        """Return why a request is refused, or "" after removing the token from its path.

        Args:
            request: The `websockets.http11.Request`.
        """
        hosts, origins = (request.headers.get_all(name) for name in ("Host", "Origin"))
        if len(hosts) != 1 or not self._is_known(hosts[0]):
            return "this name of the machine is not accepted: open the address that legged.view printed"
        if len(origins) > 1 or any(origin.partition("://")[2].lower() != hosts[0].lower() for origin in origins):
            return "a page of another site asked for this: open the address that legged.view printed"
        if self.token:
            path, mark, options = request.path.partition("?")
            first, _, rest = path.removeprefix("/").partition("/")
            if not secrets.compare_digest(first.encode(), self.token.encode()):
                return "the token is missing: open the whole address that legged.view printed"
            request.path = f"/{rest}{mark}{options}"
        return ""

    def answer(self, connection: Any, request: Any) -> Any:
        """Return the response of one of `pages`, or None for requests that viser answers.

        Args:
            connection: The connection of `websockets`. request: The request, whose path has no token any more.
        """
        path, _, query = request.path.partition("?")
        page = self.pages.get(path)
        if page is None:
            return None
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "a page of another site asked for this\n")
        status, kind, content = page(query)
        response = connection.respond(http.HTTPStatus(status), content)
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = kind
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    def _is_known(self, host: str) -> bool:
        """Return whether a header Host names this machine by a known name, or by a number if others may connect."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        name = name.strip("[]").lower().removesuffix(".")
        return name in self._names or (self._is_open and _is_number(name))


def check_host(host: str) -> None:
    """Raise an `ArgumentError` if no server can listen at an address of this machine, and warn if others reach it.

    Args:
        host: The address.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        words = "give 127.0.0.1, or 0.0.0.0 to accept connections from other machines"
        raise ArgumentError(f"the viewer cannot listen at host {host!r}: {error}; {words}") from error
    if not _is_loopback(host):
        warn_caller(
            f"the viewer listens at {host}, where other machines reach it without encryption: whoever has its address "
            "with the token can see and control it",
            SimulationWarning,
        )


@contextmanager
def guarded(gate: Gate) -> Iterator[None]:
    """Make the server that viser starts in this context ask a gate before it answers.

    Args:
        gate: The gate.

    Raises:
        MissingError: This version of viser does not start its server in the known way; it must be stopped.
    """
    import viser
    from websockets.asyncio import server

    start, guarded_servers = server.serve, list[Any]()

    def serve(handler: Callable[..., Any], *args: Any, process_request: Any = None, **options: Any) -> Any:
        if not str(getattr(handler, "__module__", "")).startswith("viser"):  # of another thread
            return start(handler, *args, process_request=process_request, **options)
        guarded_servers.append(handler)

        def checked_request(connection: Any, request: Any) -> Any:
            if gate.is_closed:
                connection.transport.abort()
                return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, "the viewer was stopped\n")
            refusal = gate.refusal(request)
            if refusal:
                return connection.respond(http.HTTPStatus.FORBIDDEN, f"{refusal}\n")
            answer = gate.answer(connection, request)
            if answer is not None or process_request is None:
                return answer
            return process_request(connection, request)

        return start(handler, *args, process_request=checked_request, **options)

    with _lock:
        server.serve = serve  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            server.serve = start
    if not guarded_servers:
        words = f"its requests cannot be checked in version {viser.__version__}: pip install 'viser~=1.1'"
        raise MissingError(f"viser was started, but {words}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
