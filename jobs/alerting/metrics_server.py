"""The HTTP server of the Prometheus metrics: on loopback for this machine, elsewhere for whoever has the token."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from dashboards.web.http_server import bound, respond
from jobs.alerting.exposition import CONTENT_TYPE, Metric, exposition
from jobs.config.bearer import bearer_token, has_token
from jobs.config.errors import UserError
from jobs.config.receivers import is_loopback
from jobs.config.settings import Settings

LOOPBACK = "127.0.0.1"
PLAIN = "text/plain; charset=utf-8"
THREADS = 2
LATE_S = 300.0
"""Seconds without a finished evaluation after which `/healthz` fails."""


def metrics_token(settings: Settings) -> str:
    """Return the token that scrapers must send; empty if everybody on this machine may read the metrics.

    Raises:
        UserError: the token is missing at its place or too short, or there is none and the address is not loopback.
    """
    token = bearer_token("The setting metrics_token", settings.metrics_token)
    if settings.metrics_port and not token and not is_loopback(settings.metrics_host):
        raise UserError(
            f"The metrics would be open to everybody who can reach {settings.metrics_host}: "
            f"set metrics_token (env:NAME or file:PATH), or set metrics_host to {LOOPBACK}."
        )
    return token


class MetricsServer:
    """`GET /metrics` and `GET /healthz`, with the deadlines and limits of the pages' server.

    The text is built after each evaluation, so a scrape costs nothing.
    """

    def __init__(self, port: int, *, host: str = LOOPBACK, token: str = "") -> None:
        """Listen on the port; 0 selects a free one. With `token`, `/metrics` requires it as a bearer token.

        Raises:
            OSError: the port is taken, or the address does not belong to this machine.
        """
        self.text = ""
        self._token = token
        self._shown_at = time.monotonic()
        self._server = bound(self._response, host=host, port=port, threads=THREADS)
        self.port = int(self._server.effective_port)
        threading.Thread(target=self._server.run, daemon=True).start()

    def show(self, found: Iterable[Metric]) -> None:
        self.text = exposition(found)
        self._shown_at = time.monotonic()

    def stop(self) -> None:
        self._server.stop()

    def _response(self, environ: Mapping[str, Any], start: Callable[..., Any]) -> list[bytes]:
        status, kind, text = self._found(environ)
        return respond(start, status, kind, text.encode())

    def _found(self, environ: Mapping[str, Any]) -> tuple[str, str, str]:
        path = environ["PATH_INFO"]
        if path == "/healthz":
            return self._health()
        if self._token and not has_token(environ.get("HTTP_AUTHORIZATION", ""), self._token):
            return "401 Unauthorized", PLAIN, "The metrics require their token: send it as Authorization: Bearer.\n"
        # DNS rebinding: any web page can make a browser send requests here, with that page's host name. No such page
        # knows the token.
        if not self._token and not is_own_name(environ.get("HTTP_HOST", "")):
            return "403 Forbidden", PLAIN, f"Metrics are only for this machine: use {LOOPBACK}.\n"
        if path != "/metrics":
            return "404 Not Found", PLAIN, "There is only /metrics here.\n"
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return "405 Method Not Allowed", PLAIN, "Metrics are read with GET.\n"
        return "200 OK", CONTENT_TYPE, self.text

    def _health(self) -> tuple[str, str, str]:
        age = time.monotonic() - self._shown_at
        if age > LATE_S:
            return "503 Service Unavailable", PLAIN, f"No evaluation of alerts has ended for {age:.0f} s.\n"
        return "200 OK", PLAIN, "ok\n"


def is_own_name(host: str) -> bool:
    """Return whether a Host header names this machine's loopback, with or without a port."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
