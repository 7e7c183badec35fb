"""Sends one JSON POST to an address from the settings. It follows no redirect and has one overall deadline."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from jobs.config.receivers import is_loopback
from pipelines.gold.alerts.escaping import without_links

TIMEOUT_S = 5.0
"""Deadline for the whole request: connecting, TLS, sending, headers and body of the response. A socket timeout alone is
not enough, because it restarts with every byte that arrives.
"""
LONGEST_RESPONSE = 300


class NotAcceptedError(Exception):
    """The receiver did not accept the request; the message is a short reason.

    `status` is that of the response, 0 without one; `wait_s` are the seconds of its header Retry-After, else 0.
    """

    def __init__(self, reason: str, *, status: int = 0, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.status, self.wait_s = status, wait_s


class NoRedirect(HTTPRedirectHandler):
    """Follows no redirect, so that nothing is sent to an address outside the settings."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Deadline:
    """Shuts down the connection after the deadline, which ends any blocked read or write at once.

    Name resolution cannot be interrupted, so the caller must not wait for it.
    """

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_over = False

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._socket is not None:
                self._socket.close()

    def connect(self, address: tuple[str, int], *_: Any) -> socket.socket:
        """Connect like `socket.create_connection`, within the remaining time for all addresses of the name."""
        for family, kind, protocol, _name, address_found in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            connecting = socket.socket(family, kind, protocol)
            try:
                connecting.settimeout(max(0.001, self._ends_at - time.monotonic()))
                connecting.connect(address_found)
            except OSError as error:
                connecting.close()
                failed: OSError = error
                continue
            self._keep(connecting)
            return connecting
        raise failed

    def _keep(self, connected: socket.socket) -> None:
        with self._lock:
            # A duplicate stays valid when TLS wraps the socket.
            self._socket = connected.dup()
        if self.is_over:
            self._cut()

    def _cut(self) -> None:
        self.is_over = True
        with self._lock, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


def _handlers(deadline: _Deadline) -> list[Any]:
    def connecting(kind: type[HTTPConnection]) -> Any:
        def made(*args: Any, **options: Any) -> HTTPConnection:
            connection = kind(*args, **options)
            connection._create_connection = deadline.connect  # type: ignore[attr-defined] # noqa: SLF001 - http.client has no other place for it
            return connection

        return made

    class Plain(HTTPHandler):
        def http_open(self, request: Request) -> Any:
            return self.do_open(connecting(HTTPConnection), request)

    class Tls(HTTPSHandler):
        def https_open(self, request: Request) -> Any:
            return self.do_open(connecting(HTTPSConnection), request)

    return [Plain, Tls]


def post(url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """Send the body; return the first bytes of the response's body.

    Raises:
        NotAcceptedError: no response within the deadline, or a status that is not success.
    """
    proxies = [ProxyHandler({})] if is_loopback(urlsplit(url).hostname or "") else []
    request = Request(url, body, {"Content-Type": "application/json", **headers}, method="POST")  # noqa: S310 - the settings allow http and https only
    with _Deadline(TIMEOUT_S) as deadline:
        try:
            with build_opener(NoRedirect, *_handlers(deadline), *proxies).open(request, timeout=TIMEOUT_S) as response:
                # A connection that was shut down looks like the end of the headers.
                if deadline.is_over:
                    raise TimeoutError
                return _begin(response)
        except HTTPError as error:
            with error:
                reply = without_links(_begin(error).decode("utf-8", "replace").strip())
            reason = f"answered {error.code}{f': {reply}' if reply else ''}"
            raise NotAcceptedError(reason, status=error.code, wait_s=_wait_s(error)) from None
        except (OSError, HTTPException, ValueError) as error:
            raise NotAcceptedError(_words(error, is_late=deadline.is_over)) from None


def _wait_s(response: Any) -> float:
    """Return the seconds of the header Retry-After; 0 without one, or if it is a date."""
    seconds = str(response.headers.get("Retry-After") or "").strip()
    return float(seconds) if seconds.isascii() and seconds.isdigit() and len(seconds) < 7 else 0.0


def _begin(response: Any) -> bytes:
    """Return the first bytes of a response. Errors in the body are ignored, because only the status counts."""
    with suppress(OSError, HTTPException, ValueError):
        return bytes(response.read(LONGEST_RESPONSE))
    return b""


def _words(error: Exception, *, is_late: bool) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    if is_late or isinstance(reason, TimeoutError):
        return f"no answer within {TIMEOUT_S:.0f} s"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror.lower()
    return without_links(str(reason) or type(reason).__name__)
