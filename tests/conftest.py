"""What several folders share: one Spark session and one broker for the whole run, a warehouse for each test."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def spark():
    from jobs.spark import session

    running = session("regroup tests", cores=2, driver_memory="1g")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A Kafka broker whose logs keep everything; its topics are shared, so each test makes its own."""
    from jobs.lab.broker import Broker

    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1}
    with Broker(tmp_path_factory.mktemp("broker"), overrides=overrides) as running:
        yield running


@pytest.fixture
def warehouse(tmp_path) -> Path:
    return tmp_path / "warehouse"
