"""What Spark starts as Python, for `up`: a fork of the template runs the module, and this process waits for it.

Spark starts a process for each of its daemons and for each plan of a stream. This one has the name and the streams
that Spark expects, loads nothing but the socket, and passes Spark's signals on by its own end. Without a template, it
becomes Python itself. Arguments: the interpreter, the template's socket, and those for Python, `-m MODULE ...`.
"""

from __future__ import annotations

import _socket
import os
import sys

SIZE = 4
"""As in `jobs.processes.template`."""


def _received(connection: _socket.socket) -> bytes:
    found = b""
    while len(found) < SIZE:
        part = connection.recv(SIZE - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _ordered(address: str, arguments: list[str]) -> _socket.socket | None:
    """Send the order to the template, and return the connection once the fork runs; None if no template forks."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    variables = [b"%s=%s" % each for each in os.environb.items()]
    texts = [os.getcwd(), str(len(arguments)), *arguments]  # noqa: PTH109 - without pathlib, which takes memory
    packed = b"".join(each + b"\0" for each in (*map(os.fsencode, texts), *variables))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    head = len(packed).to_bytes(SIZE, "little")
    try:
        connection.connect(address)
        connection.sendmsg([head], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        connection.sendall(packed)
        _received(connection)
    except (OSError, EOFError):
        return None
    return connection


def main(python: str, address: str, *arguments: str) -> None:
    """Run Python with these arguments in a fork, and exit with its status."""
    connection = _ordered(address, list(arguments[1:])) if arguments[:1] == ("-m",) else None
    if connection is None:
        os.execv(python, [python, *arguments])  # noqa: S606 - the interpreter that runs this
    try:
        status = int.from_bytes(_received(connection), "little")
    except (OSError, EOFError):
        status = 1
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
