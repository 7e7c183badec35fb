"""Readers get answers while others hold connections open, and nobody holds one open for long."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from threading import Event, Thread

import pytest

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from dashboards.web.http_server import HEADER_S, REQUEST_S, RESPONSE_S, THREADS, WAITING_MOST, bound
from dashboards.web.requests import LARGEST
from tests.ui.web.half_open import BODY, HEAD, KINDS, WHOLE, closed_after, connect, held

pytestmark = pytest.mark.slow


@contextmanager
def running(application) -> Iterator[int]:
    server = bound(application, host="127.0.0.1", port=0)
    serving = Thread(target=server.run)
    serving.start()
    yield int(server.effective_port)
    server.stop()
    serving.join()


@pytest.fixture
def app(tmp_path):
    return create_app(LocalLake(tmp_path)).server


@pytest.fixture
def port(app):
    with running(app) as port:
        yield port


@pytest.fixture
def hasty(monkeypatch):
    """Set deadlines short enough for a test, in the same order."""
    for name, seconds in (("HEADER_S", 1.0), ("REQUEST_S", 2.0), ("IDLE_S", 3.0), ("RESPONSE_S", 2.0)):
        monkeypatch.setattr(f"dashboards.web.http_server.{name}", seconds)


def response(port: int, source: str = "127.0.0.1") -> tuple[int, float]:
    """Return the status of a page, and the seconds until it was read."""
    began = time.monotonic()
    asked = HTTPConnection("127.0.0.1", port, timeout=120, source_address=(source, 0))
    asked.request("GET", "/")
    found = asked.getresponse()
    found.read()
    asked.close()
    return found.status, time.monotonic() - began


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [100, 500])
def test_a_reader_is_answered_at_once_while_others_hold_connections(port, kind, count) -> None:
    with held(port, kind, count):
        found = []
        for _ in range(5):
            found.append(response(port))
            time.sleep(0.3)
        assert {200} == {status for status, _ in found}
        # In a queue behind the held connections, each would wait until one of them is closed. A busy machine may delay
        # some.
        assert sorted(took for _, took in found)[2] < HEADER_S / 2


def test_a_reader_who_keeps_his_connection_keeps_it_while_another_address_opens_many(port) -> None:
    reader = HTTPConnection("127.0.0.1", port, timeout=120, source_address=("127.0.0.2", 0))
    reader.request("GET", "/healthz")
    reader.getresponse().read()
    used = reader.sock
    with held(port, "header", 500):
        for _ in range(3):
            time.sleep(0.5)
            reader.request("GET", "/healthz")
            assert b"ok\n" == reader.getresponse().read()
    assert used is reader.sock
    reader.close()


def test_a_request_that_is_running_is_not_given_up_for_connections_that_only_wait(app) -> None:
    are_held = Event()

    def slow(environ, start):
        if environ["PATH_INFO"] == "/healthz":
            assert are_held.wait(120)
            time.sleep(1)
        return app(environ, start)

    with running(slow) as port:
        reader = HTTPConnection("127.0.0.1", port, timeout=120)
        reader.request("GET", "/healthz")
        with held(port, "header", 2 * WAITING_MOST):
            are_held.set()
            assert b"ok\n" == reader.getresponse().read()
        reader.close()


def test_a_stop_during_requests_logs_nothing(caplog) -> None:
    served, answered = Event(), Event()

    def waits(environ, start):
        served.set()
        answered.wait(60)
        start("200 OK", [("Content-Length", "0")])
        return []

    with ExitStack() as stack:
        stack.callback(answered.set)
        with running(waits) as port:
            for _ in range(THREADS + 5):
                stack.enter_context(connect(port, WHOLE))
            assert served.wait(60)
        assert [] == caplog.records


@pytest.mark.parametrize(("begun", "each", "seconds"), [(b"", b"", 1.0), (HEAD, b"x", 1.0), (BODY, b"x", 2.0)])
def test_a_request_that_does_not_arrive_in_time_ends_its_connection(hasty, port, begun, each, seconds) -> None:
    assert seconds <= closed_after(port, begun, 120, each) + 0.5


def test_a_connection_without_a_further_request_ends(hasty, port) -> None:
    assert closed_after(port, KINDS["keep-alive"], 120) > 2


def test_an_answer_that_nobody_reads_ends_its_connection(hasty, port, monkeypatch) -> None:
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect(("127.0.0.1", port))
    wanted = b"GET /assets/plotly/plotly-cartesian.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    opened.sendall(wanted * 20)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        time.sleep(0.25)
        try:
            opened.sendall(b"\r\n" * 2_000)
        except OSError:
            break
    else:
        raise AssertionError("the connection is still open")
    opened.close()
    assert 200 == response(port)[0]


def test_the_deadlines_leave_time_for_a_slow_network() -> None:
    assert HEADER_S >= 5
    assert REQUEST_S >= 10
    assert RESPONSE_S >= 60


def test_a_body_is_refused_before_it_is_read(port) -> None:
    for size in (LARGEST + 1, 180_000_000, 10**30):
        opened = connect(port)
        opened.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % size)
        assert b" 413 " in opened.recv(65_536).partition(b"\r\n")[0]
        opened.close()


def test_a_body_in_chunks_is_refused_once_it_is_too_large(port) -> None:
    opened = connect(port, b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        opened.sendall((b"10000\r\n" + b"x" * 65_536 + b"\r\n") * 1_000)
    opened.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://[::1/ HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
    ],
)
def test_a_request_that_is_none_is_refused_in_words_and_not_logged(port, sent, caplog) -> None:
    opened = connect(port, sent)
    status = opened.recv(65_536).split(b" ", 2)[1]
    opened.close()
    assert status in (b"400", b"403", b"413", b"431", b"501")
    assert [] == caplog.records
