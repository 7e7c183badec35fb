"""Receivers that hold a connection in each way that HTTP allows."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

STEP_S = 0.3
HEAD = b"HTTP/1.1 200 OK\r\n"


def _forever(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece


KINDS = {
    "says nothing": (b"", b""),
    "one byte of a header at a time": (HEAD + b"X: ", b"y"),
    "headers without end": (HEAD, b"X: y\r\n"),
    "informational responses without end": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "one byte of an error's body at a time": (b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n", b"z"),
    "a status line without end": (b"", b"H"),
}
"""Kind → what is sent at once, and what again and again."""
UNREAD = "never reads"


class SlowReceiver:
    """Answers every connection in one of these ways until it is stopped."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._stopped = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=50)
        self._open: list[socket.socket] = []
        self.connections = 0
        self.most_at_once = 0
        self._now = 0
        self.port = self._server.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        self._server.settimeout(0.1)
        while not self._stopped.is_set():
            try:
                client, _ = self._server.accept()
            except TimeoutError:
                continue
            self.connections += 1
            self._threads.append(threading.Thread(target=self._serve, args=[client]))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        with client:
            if self._kind == UNREAD:
                self._stopped.wait()
                return
            begun, again = KINDS[self._kind]
            try:
                client.recv(1_000_000)
                client.sendall(begun)
                while not self._stopped.wait(STEP_S):
                    client.sendall(again)
                    client.settimeout(0.001)
                    try:
                        if not client.recv(1_000_000):
                            break
                    except TimeoutError:
                        pass
                    client.settimeout(5)
            except OSError:
                pass
        self._now -= 1

    def stop(self) -> None:
        self._stopped.set()
        for each in self._threads:
            each.join()
        self._server.close()
