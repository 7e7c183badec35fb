"""Receivers that end with their test: the Alertmanager by its pid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.alerts.receiving import Alertmanager, HttpReceiver


@pytest.fixture
def received() -> Iterator[HttpReceiver]:
    receiver = HttpReceiver()
    yield receiver
    receiver.stop()


@pytest.fixture
def alertmanager(tmp_path: Path, received: HttpReceiver) -> Iterator[Alertmanager]:
    running = Alertmanager(tmp_path, received.url)
    running.start()
    yield running
    running.stop()
