"""Ports for processes that are about to start."""

from __future__ import annotations

import errno
import random
import socket
from contextlib import ExitStack

CHOSEN = range(15_000, 32_768)
"""Linux takes the ports of connections, and those for port 0, from 32768 on. Such a port could be taken again before
the process that it was chosen for listens on it, or while that process restarts.
"""
TAKEN = 1_000
"""Maximum number of ports to try that are in use already."""


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return free ports of an address of this machine.

    Raises:
        OSError: too few ports are free, or the address does not belong to this machine.
    """
    found: list[int] = []
    with ExitStack() as stack:
        # Not the generator of `random`: tests give it the same seed in processes that run at the same time.
        for port in random.SystemRandom().sample(CHOSEN, min(len(CHOSEN), count + TAKEN)):
            probe = stack.enter_context(socket.socket())
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise OSError(errno.EADDRINUSE, f"fewer than {count} ports of {host} are free")
