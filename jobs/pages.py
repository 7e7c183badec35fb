"""The port that the pages listen on, and the access rules for them."""

from __future__ import annotations

import socket
from contextlib import suppress

from dashboards.web.access import Access
from jobs.config.declared import secret
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.processes.ports import free_ports

TRIED = 20
GUARDS = {
    "token": "pages_token",
    "proxies": "trusted_proxies",
    "header": "identity_header",
    "groups_header": "groups_header",
    "readers": "readers",
    "hosts": "pages_hosts",
    "address": "dashboard_url",
}
"""The setting that each field of `Access` comes from."""


def access(settings: Settings) -> Access:
    """Return the access rules of the pages.

    Raises:
        UserError: anybody could read the pages, or the settings contradict each other.
    """
    declared = {name: getattr(settings, key) for name, key in GUARDS.items()}
    declared["token"] = secret("The setting pages_token", settings.pages_token)
    try:
        found = Access.of(**declared)
    except ValueError as error:
        raise UserError(str(error)) from None
    if (why := found.refusal(settings.host)) is not None:
        raise UserError(why)
    return found


def free_port(host: str, wanted: int) -> int:
    """Return `wanted` or the next free port after it; for 0, any free port.

    Raises:
        UserError: none of the `TRIED` ports is free, or the address does not belong to this machine.
    """
    if wanted == 0:
        # An address of another machine is refused again below, with a sentence.
        with suppress(OSError):
            return free_ports(1, host)[0]
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
