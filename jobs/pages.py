"""Where the pages can listen."""

from __future__ import annotations

import socket

from jobs.errors import UserError

TRIED = 20


def free_port(host: str, wanted: int) -> int:
    """`wanted`, or the next free port after it; any for 0.

    Raises:
        UserError: none of the next `TRIED` is free, or the address is not this machine's.
    """
    for port in range(wanted, wanted + TRIED):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise UserError(
        f"No port from {wanted} to {wanted + TRIED - 1} is free on {host}: choose another with --port, or --host."
    )
