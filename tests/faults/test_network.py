"""The network between `ingest` and its broker is slow, loses packets or is cut: the same tables."""

from __future__ import annotations

import re
import time

import pytest

from jobs.lab.broker import Broker
from schemas.bronze import COORDINATOR_RECORDS
from tests.faults.matrix import Trial
from tests.faults.network import Wire, unavailable
from tests.faults.points import is_open, versions
from tests.faults.process import Job, finished
from tests.faults.tables import content, difference
from tests.faults.test_broker import cluster_of
from tests.jobs.conftest import record

pytestmark = pytest.mark.faults

CUT_S = 20.0
"""Longer than `ingest` waits before it checks the ends of the logs, but shorter than until it gives up."""


@pytest.fixture
def wire(tmp_path):
    if why := unavailable():
        pytest.skip(why)
    with Wire(tmp_path / "wire") as laid:
        yield laid


@pytest.fixture
def afar(tmp_path, wire):
    """A cluster at this end of the wire, with the recorded history; jobs run at the other end."""
    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1}
    with Broker(tmp_path / "broker", overrides=overrides, host=wire.here) as broker:
        cluster = cluster_of(broker)
        record(cluster)
        yield cluster


def test_delay_and_loss_change_no_row(matrix, warehouse, wire, afar, undisturbed, number) -> None:
    trial = matrix("network: 200 ms and 5 % loss in each direction", Trial())
    wire.delay_s, wire.loss = 0.2, 0.05
    trial.seconds = finished("ingest", warehouse, afar, within=wire.inside())
    trial.is_hit = wire.lost > 0
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical


def test_a_short_cut_is_waited_for(matrix, warehouse, wire, afar, undisturbed, number) -> None:
    trial = matrix(f"network cut within a batch, for {CUT_S:.0f} s", Trial())
    job = within_a_batch(trial, warehouse, wire, afar)
    time.sleep(CUT_S)
    wire.is_cut = False
    began = time.monotonic()
    assert 0 == job.end(), job.tail()
    trial.seconds = time.monotonic() - began
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical


def test_a_long_cut_is_reported_and_read_on_after(matrix, warehouse, wire, afar, undisturbed, number) -> None:
    trial = matrix("network cut within a batch, until ingest gives up", Trial())
    job = within_a_batch(trial, warehouse, wire, afar)
    assert 2 == job.end(), job.tail()
    # The error names whichever of the two topics was requested first.
    assert re.search("Kafka sent nothing of (__consumer_offsets|regroup-events) for 90 s", job.tail())
    assert not job.traces()
    wire.is_cut = False
    trial.seconds = finished("ingest", warehouse, afar, within=wire.inside())
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical


def within_a_batch(trial: Trial, warehouse, wire: Wire, cluster) -> Job:
    """A job whose network is cut while its second batch is read."""
    wire.delay_s = 0.1  # so that not all of the batch is there at once
    job = Job("ingest", warehouse, cluster, within=wire.inside())
    there = job.until(lambda: is_open(warehouse))
    before = versions(warehouse, COORDINATOR_RECORDS)
    wire.is_cut = True
    lost = wire.lost
    trial.is_hit = there and versions(warehouse, COORDINATOR_RECORDS) == before
    assert job.until(lambda: wire.lost > lost), "nothing was asked of the broker any more"
    return job
