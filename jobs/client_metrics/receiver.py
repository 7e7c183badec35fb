"""The HTTP server that takes metrics from brokers' plugins and OpenTelemetry collectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dashboards.web.http_server import bound, respond
from jobs.client_metrics.otlp_requests import JSON, LARGEST, PROTOBUF, RefusedRequestError, messages, unpacked
from jobs.config.bearer import has_token
from jobs.config.errors import UserError
from jobs.config.terminal import say

THREADS = 16
"""Requests at once. Each waits until the broker has acknowledged its messages."""
PLAIN = "text/plain; charset=utf-8"
PATH = "/v1/metrics"
RETRY_S = 5

Response = tuple[str, str, bytes]


class MetricsReceiver:
    """`POST /v1/metrics` (OTLP/HTTP) and `GET /healthz`. `deliver` sends messages to the events topic.

    A request is answered with 200 after its messages have arrived, with 503 if Kafka does not accept it, so that the
    sender repeats it. With `token`, a request must have it as a bearer token.

    Raises:
        OSError: the port is taken, or the address does not belong to this machine.
    """

    def __init__(self, deliver: Callable[[Sequence[bytes]], None], *, host: str, port: int, token: str) -> None:
        self._deliver = deliver
        self._token = token
        self._is_failing = False
        self._server = bound(self._response, host=host, port=port, threads=THREADS, largest=LARGEST)
        self.port = int(self._server.effective_port)

    def run(self) -> None:
        """Serve until `stop`."""
        self._server.run()

    def stop(self) -> None:
        self._server.stop()

    def _response(self, environ: Mapping[str, Any], start: Callable[..., Any]) -> list[bytes]:
        status, kind, body = self._found(environ)
        more = [("Retry-After", str(RETRY_S))] if status.startswith("503") else []
        return respond(start, status, kind, body, *more)

    def _found(self, environ: Mapping[str, Any]) -> Response:
        if environ["PATH_INFO"] == "/healthz":
            return "200 OK", PLAIN, b"ok\n"
        if self._token and not has_token(environ.get("HTTP_AUTHORIZATION", ""), self._token):
            return _text("401 Unauthorized", "Send the token of receive-metrics as Authorization: Bearer.")
        if environ["PATH_INFO"] != PATH:
            return _text("404 Not Found", f"There is only {PATH} here.")
        if environ["REQUEST_METHOD"] != "POST":
            return _text("405 Method Not Allowed", "Metrics are sent with POST.")
        return self._received(environ)

    def _received(self, environ: Mapping[str, Any]) -> Response:
        kind = str(environ.get("CONTENT_TYPE") or "").partition(";")[0].strip().lower()
        # No web page can make a browser send these types to another address without asking that address first.
        if kind not in (PROTOBUF, JSON):
            return _text("415 Unsupported Media Type", f"The Content-Type must be {PROTOBUF} or {JSON}.")
        try:
            encoding = str(environ.get("HTTP_CONTENT_ENCODING") or "").strip().lower()
            if found := messages(unpacked(environ["wsgi.input"].read(), encoding), kind):
                self._deliver(found)
        except RefusedRequestError as why:
            return _text("400 Bad Request", f"The request was not accepted: {why}.")
        except UserError as why:
            self._report(str(why))
            return _text("503 Service Unavailable", "Kafka does not accept messages now.")
        self._report("")
        # An empty ExportMetricsServiceResponse: everything was accepted.
        return "200 OK", kind, b"{}" if kind == JSON else b""

    def _report(self, problem: str) -> None:
        """Print a problem when it begins, and when it is over."""
        if bool(problem) != self._is_failing:
            self._is_failing = bool(problem)
            say(f"Metrics are refused: {problem}" if problem else "Metrics are accepted again.")


def _text(status: str, sentence: str) -> Response:
    return status, PLAIN, f"{sentence}\n".encode()
