"""The program that Spark starts in place of Python under `up` and `ingest`: a fork of the template runs the module, and
this process waits for it.

Spark starts a process for each of its daemons and for each plan of a stream. This process has the name and the streams
that Spark expects, and loads nothing but the socket. When a signal of Spark ends it, the fork is ended too. Without a
template, it becomes Python itself. Arguments: the interpreter, the template's socket, and those of Python (`-m MODULE
...`).
"""

from __future__ import annotations

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SIZE = 4
"""Bytes of a number on the socket: the length of an order, then the process id and the exit status."""


def received(connection: _socket.socket, size: int = SIZE) -> bytes:
    """Return exactly `size` bytes. Raises `EOFError` if the other side sent less before it closed."""
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def ordered(
    address: str, arguments: Sequence[str], variables: Iterable[bytes], streams: Sequence[int]
) -> _socket.socket:
    """Send an order to the template, and return the connection, from which the process id can be read.

    Fields end with NUL, like the arguments of a process: this process's folder, the number of arguments, the arguments
    of `python -m`, and the environment (`NAME=value`; empty for that of the template). `streams` become the fork's
    stdin, stdout and stderr.

    Raises:
        OSError: there is no template.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    texts = [os.getcwd(), str(len(arguments)), *arguments]  # noqa: PTH109 - without pathlib, which takes memory
    packed = b"".join(each + b"\0" for each in (*map(os.fsencode, texts), *variables))
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in streams)
    try:
        connection.connect(address)
        connection.sendmsg([len(packed).to_bytes(SIZE, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
        connection.sendall(packed)
    except OSError:
        connection.close()
        raise
    return connection


def _forked(address: str, arguments: Sequence[str]) -> _socket.socket | None:
    """Return the connection of a fork that runs; None if no template forks."""
    try:
        connection = ordered(address, arguments, [b"%s=%s" % each for each in os.environb.items()], range(3))
        received(connection)
    except (OSError, EOFError):
        return None
    return connection


def main(python: str, address: str, *arguments: str) -> None:
    """Run Python with these arguments in a fork, and exit with its status."""
    connection = _forked(address, arguments[1:]) if arguments[:1] == ("-m",) else None
    if connection is None:
        os.execv(python, [python, *arguments])  # noqa: S606 - the interpreter that runs this
    try:
        status = int.from_bytes(received(connection), "little")
    except (OSError, EOFError):
        status = 1
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
