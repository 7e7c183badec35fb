"""Addresses to listen on, as they are written on the command line."""

from __future__ import annotations

from urllib.parse import urlsplit

from jobs.config.errors import UserError


def listening(address: str) -> tuple[str, int]:
    """Return host and port of an address that is written as `HOST:PORT`.

    Raises:
        UserError: it is written in another way.
    """
    try:
        found = urlsplit(f"//{address}")
        host, port = found.hostname, found.port
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise UserError(f"--listen must be HOST:PORT, such as 0.0.0.0:4318, but is {address[:60]!r}.")
    return host, port
