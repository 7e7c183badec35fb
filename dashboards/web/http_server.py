"""The HTTP server of the pages: Waitress with deadlines and limits for clients that send or read too slowly.

Waitress alone keeps an incomplete request while a byte arrives every two minutes, and accepts no connection beyond its
hundredth. Here each request has a deadline. When too many connections are open, the server closes those that wait for
their client. A connection whose response is being computed is never closed to make room.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.utilities import BadRequest

from dashboards.web.requests import LARGEST

HEADER_S = 10.0
"""Seconds from the first byte (on a new connection: from its opening) until the request header is complete."""
REQUEST_S = 30.0
"""Seconds from the first byte until the whole request has arrived."""
IDLE_S = 75.0
"""Seconds that a connection is kept between two requests."""
RESPONSE_S = 120.0
"""Seconds within which the client must read all pending output."""
WAITING_MOST = 200
"""Open connections above which the server closes those that wait for their client."""
HEADER_MOST = 32 * 1024
"""Maximum bytes of a header. Proxies add tokens of several kB; the pages' own addresses stay below 4 kB."""
THREADS = 8


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """A parser that answers 400 to every request that cannot be parsed; Waitress logs a traceback for some of them."""

    def received(self, data: bytes) -> int:
        try:
            return int(super().received(data))
        except Exception:  # noqa: BLE001 - untrusted bytes may raise anything in the parser
            self.error = BadRequest("The request cannot be parsed.")
            self.completed = True
            return len(data)


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection that records since when it waits for its client."""

    parser_class = Parser
    began_at: float | None = None
    """When the first byte of the incomplete request arrived."""
    unread_since: float | None = None

    def received(self, data: bytes) -> bool:
        earlier = self.request
        is_received = super().received(data)
        if self.request is None:
            self.began_at = None
        elif self.request is not earlier:
            self.began_at = time.time()
        return bool(is_received)

    def readable(self) -> bool:
        return bool(self.connected and super().readable())

    def writable(self) -> bool:
        return bool(self.connected and super().writable())

    def waits_since(self) -> float | None:
        """Return since when the server waits for the client; None while a response is being computed."""
        if self.requests:
            return None
        return self.began_at or float(self.last_activity)

    def is_overdue(self, now: float) -> bool:
        """Return whether a deadline has passed. Call about once a second."""
        if not self.total_outbufs_len:
            self.unread_since = None
        elif self.unread_since is None:
            self.unread_since = now
        if self.unread_since is not None:
            return now - self.unread_since > RESPONSE_S
        since = self.waits_since()
        return since is not None and now - since > self._patience()

    def _patience(self) -> float:
        if self.began_at is None:
            return HEADER_S if self.last_activity == self.creation_time else IDLE_S
        return REQUEST_S if self.request is not None and self.request.headers_finished else HEADER_S

    def give_up(self) -> None:
        """Close the connection now: a client that reads nothing never becomes writable."""
        self.will_close = True
        self.handle_close()


class PagesServer(TcpWSGIServer):  # type: ignore[misc]
    """The bound server of an application; `run` serves requests."""

    channel_class = Channel
    _is_stopped = False

    def stop(self) -> None:
        """End `run` in another thread, and close every connection."""
        self._is_stopped = True
        # The loop may have ended and closed its trigger already.
        with suppress(OSError):
            self.pull_trigger()

    def readable(self) -> bool:
        if self._is_stopped:
            # `run` ends with this exception, as with Ctrl-C.
            raise SystemExit
        return bool(super().readable())

    def run(self) -> None:
        super().run()
        self.asyncore.close_all(self._map)

    def handle_accept(self) -> None:
        super().handle_accept()
        while len(self.active_channels) > WAITING_MOST and (longest := self._longest_waiting()) is not None:
            longest.give_up()

    def maintenance(self, now: float) -> None:
        for channel in list(self.active_channels.values()):
            if channel.is_overdue(now):
                channel.give_up()

    def _longest_waiting(self) -> Channel | None:
        """Return the connection that has waited longest, of the address with the most waiting connections.

        A client can therefore displace only its own connections, unless it has many addresses.
        """
        waiting = [(since, each) for each in self.active_channels.values() if (since := each.waits_since()) is not None]
        by_address = Counter(each.addr[0] for _, each in waiting)
        found = min(waiting, key=lambda pair: (-by_address[pair[1].addr[0]], pair[0]), default=None)
        return found[1] if found else None


def bound(application: Any, *, host: str, port: int, threads: int = THREADS, largest: int = LARGEST) -> PagesServer:
    """Return a server that listens on the first address of `host`, and serves once `run` is called.

    `largest` is the maximum of bytes of a request's body.

    Raises:
        OSError: the address is not available.
    """
    # A browser requests all files of a page at once, so some requests always wait; that needs no log line.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    server = PagesServer(
        application,
        host=host,
        port=port,
        ipv6=":" in host,
        threads=threads,
        ident=None,
        cleanup_interval=1,
        connection_limit=2 * WAITING_MOST,
        max_request_header_size=HEADER_MOST,
        # Waitress rejects a body of exactly this size.
        max_request_body_size=largest + 1,
        # `select` fails for file descriptors from 1024 on.
        asyncore_use_poll=True,
        log_socket_errors=False,
    )
    # A stop ends the requests that still run or wait. Waitress logs their number as a warning; errors are still logged.
    server.task_dispatcher.logger = logging.getLogger("waitress.tasks")
    server.task_dispatcher.logger.setLevel(logging.ERROR)
    return server


def respond(start: Callable[..., Any], status: str, kind: str, body: bytes, *more: tuple[str, str]) -> list[bytes]:
    """Send a whole response of a port for programs, with `more` headers. 401 asks for a bearer token."""
    headers = [("Content-Type", kind), ("Content-Length", str(len(body))), ("X-Content-Type-Options", "nosniff")]
    if status.startswith("401"):
        headers.append(("WWW-Authenticate", "Bearer"))
    start(status, [*headers, *more])
    return [body]
