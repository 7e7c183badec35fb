"""The first read and the first build, which need no Spark, killed at any point: the tables are those of a quiet run.

`ingest` and `build` do them in two commands, `up` does both in one.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake.exceptions import DeltaError

from jobs.config.clusters import Cluster
from jobs.kafka.first_read import MANY
from jobs.lab.broker import Broker
from pipelines.decoding.group_partition import partition_of
from schemas.records import OFFSETS_TOPIC
from testing.records.binary import group_key, group_metadata, offset_commit, offset_commit_key
from testing.waiting import wait_until
from tests.faults.matrix import Trial
from tests.faults.process import LONGEST_S, Job, finished
from tests.faults.tables import Content, Difference, content, difference
from tests.faults.test_broker import cluster_of
from tests.faults.test_build import compared
from tests.jobs.conftest import silver

pytestmark = pytest.mark.faults

PARTITIONS = 10
OVERRIDES = {"log.cleaner.enable": "false", "log.retention.ms": -1, "offsets.topic.num.partitions": PARTITIONS}
RECORDS_A_BATCH = 15_000
GROUPS = [f"orders-{number}" for number in range(60)]
RESOURCES = 10
ROUNDS, ROUNDS_A_GENERATION = (MANY + 20_000) // (len(GROUPS) * RESOURCES), 20
Made = tuple[str, int, bytes, bytes]
"""Group, time, key and value of a record."""


def history() -> Iterator[Made]:
    """Enough records for a first read: rounds of commits, and a new generation now and then."""
    began = int(time.time() * 1000) - ROUNDS * 1_000
    for turn in range(ROUNDS):
        at_ms = began + turn * 1_000
        for group in GROUPS:
            if turn % ROUNDS_A_GENERATION == 0:
                yield group, at_ms, group_key(group), group_metadata(group, turn // ROUNDS_A_GENERATION + 1, at_ms)
            for partition in range(RESOURCES):
                value = offset_commit(turn * 100 + partition, at_ms)
                yield group, at_ms, offset_commit_key(group, "settlement-events", partition), value


def record(cluster: Cluster) -> None:
    """Make both topics and write the history into `__consumer_offsets`."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topics = [NewTopic(OFFSETS_TOPIC, PARTITIONS, 1), NewTopic(cluster.events_topic, 2, 1)]
    for made in admin.create_topics(topics).values():
        made.result(120)
    # A coordinator that still loads a partition would load its groups, and write records when their members expire.
    wait_until(lambda: not any(found.exception(60) for found in admin.describe_consumer_groups(GROUPS).values()))
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            # Only an admin client's id may write to an internal topic.
            "client.id": "__admin_client",
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    failed = []
    for group, at_ms, key, value in history():
        producer.produce(
            OFFSETS_TOPIC,
            value,
            key,
            partition_of(group, PARTITIONS),
            timestamp=at_ms,
            on_delivery=lambda error, _: failed.append(error) if error is not None else None,
        )
    assert producer.flush(120) == 0
    assert failed == []


class Quiet(NamedTuple):
    """An undisturbed run: its warehouse after `ingest` and after `build`, and the content of bronze."""

    read: Path
    built: Path
    bronze: Content


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> Iterator[Cluster]:
    """A broker with enough records for a first read of several batches."""
    with Broker(tmp_path_factory.mktemp("loaded") / "broker", overrides=OVERRIDES) as broker:
        cluster = replace(cluster_of(broker), max_offsets_per_trigger=RECORDS_A_BATCH)
        record(cluster)
        yield cluster


@pytest.fixture(scope="module")
def quiet(tmp_path_factory, loaded) -> Quiet:
    folder = tmp_path_factory.mktemp("quiet")
    read, built = folder / "read" / "warehouse", folder / "built" / "warehouse"
    finished("ingest", read, loaded)
    shutil.copytree(read, built)
    finished("build", built, loaded)
    assert not list(built.rglob("_checkpoints/**/offsets/*")), "a stream read or built"
    return Quiet(read, built, content(read))


def files(folder: Path) -> int:
    """Return the number of files and folders, while the job may remove some."""
    return sum(len(folders) + len(names) for _, folders, names in os.walk(folder))


def killed_at(job: Job, warehouse: Path, count: int) -> bool:
    """Kill the job when the warehouse has this number of files; return whether it still ran then."""
    there = job.until(lambda: files(warehouse) >= count) and job.process.poll() is None
    job.kill()
    return there


def test_a_killed_first_read_and_first_build_change_no_row(matrix, tmp_path, loaded, quiet, number, request) -> None:
    seed = request.config.getoption("--drawn-from")
    order, warehouse = Random(f"{seed} {number}"), tmp_path / "warehouse"
    reading, building = (matrix(f"kill -9: {name}", Trial()) for name in ("first read", "first build"))
    at = order.randrange(1, files(quiet.read)), order.randrange(files(quiet.read) + 1, files(quiet.built))

    reading.is_hit = killed_at(Job("ingest", warehouse, loaded), warehouse, at[0])
    reading.seconds = finished("ingest", warehouse, loaded)
    reading.found = difference(quiet.bronze, content(warehouse))
    assert reading.found.is_identical, (seed, at, reading.found)

    built = tmp_path / "built" / "warehouse"
    shutil.copytree(quiet.read, built)
    building.is_hit = killed_at(Job("build", built, loaded), built, at[1])
    building.seconds = finished("build", built, loaded)
    finished("build", warehouse, loaded)
    expected = silver(quiet.built)
    for each in (built, warehouse):
        building.found = compared(expected, silver(each))
        assert building.found.is_identical, (seed, at, building.found)


@pytest.mark.parametrize("fault", ["kill -9", "power cut"])
def test_a_killed_up_reads_and_builds_the_rest_without_spark(
    matrix, tmp_path, loaded, quiet, number, fault, request
) -> None:
    seed = request.config.getoption("--drawn-from")
    order, warehouse = Random(f"{seed} up {number}"), tmp_path / "warehouse"
    disk = request.getfixturevalue("disk") if fault == "power cut" else None
    if disk:
        warehouse = disk.folder / "life" / "warehouse"
    trial = matrix(f"{fault}: first read and first build in up", Trial())
    expected = silver(quiet.built)
    at = order.randrange(1, files(quiet.built))
    trial.is_hit = killed_at(Job("up", warehouse, loaded, more=("--port", "0"), is_following=True), warehouse, at)
    if disk:
        disk.cut()

    began = time.monotonic()
    up = Job("up", warehouse, loaded, more=("--port", "0"), is_following=True)
    found: list[Difference] = []

    def is_built() -> bool:
        with suppress(FileNotFoundError, DeltaError):  # a batch replaces files
            found.append(compared(expected, silver(warehouse)))
        return bool(found) and found[-1].is_identical

    try:
        wait_until(is_built, LONGEST_S)
    finally:
        up.kill()
    trial.seconds, trial.found = time.monotonic() - began, found[-1]
