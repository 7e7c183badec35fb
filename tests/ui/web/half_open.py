"""Sockets to the pages that never send a whole request, or never read the answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = b"POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 200000\r\n\r\n"
CHUNKED = b"POST /_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
KINDS = {"nothing": b"", "header": HEAD, "body": BODY, "chunks": CHUNKED, "keep-alive": WHOLE}
"""What each kind of connection sends before it goes on byte by byte."""


def connect(port: int, begun: bytes = b"") -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=120)
    opened.sendall(begun)
    return opened


@contextmanager
def held(port: int, kind: str, count: int) -> Iterator[None]:
    """Hold `count` connections of one kind; each sends a byte a second, and a closed one is opened again."""
    done = Event()

    def go_on(opened: list[socket.socket]) -> None:
        while not done.wait(1):
            for at, each in enumerate(opened):
                try:
                    if kind in ("header", "body"):
                        each.sendall(b"x")
                    each.settimeout(0)
                    if kind != "keep-alive" and each.recv(1_000) == b"":
                        raise ConnectionResetError
                except BlockingIOError:
                    pass
                except OSError:
                    each.close()
                    opened[at] = connect(port, KINDS[kind])
                finally:
                    opened[at].settimeout(120)

    with ExitStack() as stack:
        opened = [connect(port, KINDS[kind]) for _ in range(count)]
        holding = Thread(target=go_on, args=[opened])
        holding.start()
        stack.callback(lambda: [each.close() for each in opened])
        stack.callback(holding.join)
        stack.callback(done.set)
        yield


def closed_after(port: int, begun: bytes, within: float, each: bytes = b"") -> float:
    """Return the seconds until the server closes a new connection that repeatedly sends `each`; fail after `within`.

    They count from before the connection is made, since this process may pause right after that.
    """
    began = time.monotonic()
    with connect(port, begun) as opened:
        opened.settimeout(0.25)
        return _closed(opened, began, within, each)


def _closed(opened: socket.socket, began: float, within: float, each: bytes) -> float:
    while time.monotonic() - began < within:
        try:
            if opened.recv(65_536) == b"":
                return time.monotonic() - began
        except TimeoutError:
            pass
        except ConnectionResetError:
            return time.monotonic() - began
        try:
            opened.sendall(each)
        except OSError:
            return time.monotonic() - began
    raise AssertionError(f"still open after {within} s")
