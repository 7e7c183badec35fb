"""Ports for processes that start later, which no other process gets meanwhile."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from jobs.config.errors import UserError
from jobs.pages import free_port
from jobs.processes import ports
from jobs.processes.ports import CHOSEN, free_ports


def test_they_differ_and_are_not_those_of_connections() -> None:
    found = free_ports(50)
    assert len(set(found)) == 50
    assert {*found, free_port("127.0.0.1", 0)} <= {*CHOSEN}


def test_each_of_them_is_free(monkeypatch) -> None:
    # Tests that run at the same time start processes on ports of the usual range.
    monkeypatch.setattr(ports, "CHOSEN", range(14_000, 14_200))
    with ExitStack() as stack:
        for port in free_ports(50):
            stack.enter_context(socket.create_server(("127.0.0.1", port)))


def test_a_port_that_is_taken_is_left_out(monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(ports, "CHOSEN", range(port, port + 1))
        with pytest.raises(OSError, match="fewer than 1 ports"):
            free_ports(1)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match=r"[Cc]annot assign"):
        free_ports(1, "192.0.2.1")
    with pytest.raises(UserError, match=r"is free on 192\.0\.2\.1"):
        free_port("192.0.2.1", 0)
