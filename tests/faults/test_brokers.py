"""Several brokers: the coordinator of a group is killed, and the clock of the next coordinator may be behind."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupState, KafkaException, Producer
from deltalake import DeltaTable

from jobs.config.clusters import Cluster
from jobs.kafka.kafka_client import admin, topic_ends
from jobs.lab.cluster import LocalCluster as Brokers
from jobs.lab.members import ConsumerPlan, RunningGroup
from jobs.tables.paths import table_path
from pipelines.decoding.group_partition import partition_of
from schemas.bronze import COORDINATOR_RECORDS, COVERAGE
from schemas.records import OFFSETS_TOPIC
from testing.waiting import wait_until
from tests.faults.matrix import Trial
from tests.faults.points import has
from tests.faults.process import Job, finished
from tests.faults.tables import content, difference, spans
from tests.jobs.conftest import CLUSTER, differing, silver

pytestmark = pytest.mark.faults

PARTITIONS, READ = 8, "orders"
FIRST, NEXT = 2, 3
"""Node ids of a group's coordinator and of the one after it; node 1 is the controller, which must stay."""
BEHIND_S = 1_800
"""On a busy machine, minutes pass between the last record of a coordinator and the first one of the next."""

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


@contextmanager
def clock(behind_s: int) -> Iterator[None]:
    """Processes started in the block see a clock that is behind but runs at normal speed."""
    with pytest.MonkeyPatch.context() as patch:
        if behind_s:
            if LIBRARY is None:
                pytest.skip("another clock takes Debian's package faketime")
            # With the library's correction of waits for a monotonic time, Java's waits end at once, and a broker
            # keeps a core busy.
            options = {"FAKETIME": f"-{behind_s}s", "DONT_FAKE_MONOTONIC": "1", "FAKETIME_FORCE_MONOTONIC_FIX": "0"}
            for name, value in {"LD_PRELOAD": str(LIBRARY), **options}.items():
                patch.setenv(name, value)
        yield


@pytest.fixture
def brokers(tmp_path):
    """Three brokers; the preferred leader of a partition leads it again soon after it is back."""
    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1, "group.initial.rebalance.delay.ms": 0}
    with Brokers(
        tmp_path / "brokers", brokers=3, overrides=overrides | {"leader.imbalance.check.interval.seconds": 2}
    ) as running:
        running.create_topics({OFFSETS_TOPIC: PARTITIONS, READ: 4})
        yield running


def carried(brokers: Brokers) -> str:
    """Return a group whose coordinator is `FIRST`, and `NEXT` after `FIRST` is gone."""
    theirs = [p for p, nodes in brokers.replicas(OFFSETS_TOPIC).items() if nodes[:2] == [FIRST, NEXT]]
    names = (f"carried-{number}" for number in itertools.count())
    return next(name for name in names if partition_of(name, PARTITIONS) in theirs)


@pytest.mark.parametrize("behind_s", [0, BEHIND_S])
def test_a_killed_coordinator_changes_no_row(matrix, tmp_path, brokers, behind_s, number) -> None:
    clocks = f", the next one's clock {behind_s} s behind" if behind_s else ""
    trial = matrix(f"coordinator killed in a group's life{clocks}", Trial())
    cluster = Cluster(name=CLUSTER, bootstrap_servers=brokers.bootstrap_servers, max_offsets_per_trigger=4_000)
    with clock(behind_s):
        brokers.brokers[NEXT - 1].stop()
        brokers.brokers[NEXT - 1].start()
    followed, quiet = tmp_path / "followed" / "warehouse", tmp_path / "quiet" / "warehouse"
    with following(followed, cluster) as job:

        def read_all() -> None:
            assert job.until(lambda: read_to(followed) >= ends(cluster)), job.text()

        group_id = lived(trial, tmp_path, brokers, lambda: ends(cluster).total(), read_all)
        finished("build", followed, cluster)
        # A killed member is in the group until its session ends; the coordinator then writes the last record.
        wait_until(lambda: is_empty(cluster, group_id))
        assert job.until(lambda: read_to(followed) == ends(cluster)), job.tail()
    finished("build", followed, cluster)
    trial.seconds = finished("ingest", quiet, cluster)
    finished("build", quiet, cluster)
    trial.declared = sum(span["is_gap"] for span in spans(followed))
    trial.found = difference(content(quiet), content(followed))
    assert trial.found.is_identical
    assert 0 == trial.declared
    assert differing(silver(quiet), silver(followed)) == {}
    is_backwards = any(later < sooner for sooner, later in itertools.pairwise(record_times(quiet)))
    assert is_backwards == bool(behind_s)


def lived(
    trial: Trial, folder: Path, brokers: Brokers, written: Callable[[], int], read_all: Callable[[], None]
) -> str:
    """Run a group with three coordinators, the first of which is killed and later takes the group over again; return
    its id. `written` returns the number of records of all groups; `read_all` waits until all of them are read.
    """
    group_id = carried(brokers)
    plan = ConsumerPlan(group_id=group_id, topic=READ, partitions=4, members=3)
    group = RunningGroup(plan=plan, bootstrap_servers=brokers.bootstrap_servers, folder=folder, say=lambda _: None)
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})

    def is_led_by(node_id: int) -> bool:
        with suppress(KafkaException):
            return brokers.coordinator(group_id) == node_id
        return False

    def wrote(event: str) -> None:
        """Write records to commit, and wait until a coordinator has written something and all of it is read."""
        before = written()
        for number in range(100):
            producer.produce(READ, f"{event} {number}".encode())
        assert 0 == producer.flush(120)
        wait_until(lambda: written() > before)
        read_all()

    first = brokers.brokers[FIRST - 1]
    with ExitStack() as stack:
        stack.callback(group.end)
        wait_until(lambda: is_led_by(FIRST))
        group.start(0)
        group.start(1)
        wrote("before")
        first.kill()
        trial.is_hit = True
        group.start(2)
        wait_until(lambda: is_led_by(NEXT))
        wrote("meanwhile")
        group.kill(0)
        first.start()
        wait_until(lambda: is_led_by(FIRST))
        group.leave(1)
        wrote("after")
        wait_until(lambda: not group.is_running(1))
    return group_id


def is_empty(cluster: Cluster, group_id: str) -> bool:
    client = admin(cluster.client())
    with suppress(KafkaException):
        found = client.describe_consumer_groups([group_id])[group_id].result(120)
        return found.state == ConsumerGroupState.EMPTY
    return False


@contextmanager
def following(warehouse: Path, cluster: Cluster) -> Iterator[Job]:
    job = Job("ingest", warehouse, cluster, is_following=True)
    try:
        yield job
    finally:
        job.kill()


def ends(cluster: Cluster) -> Counter[int]:
    """Return the end offset of each partition with records."""
    found = topic_ends(admin(cluster.client()), OFFSETS_TOPIC)
    return Counter({partition: high for partition, (_, high) in found.ends.items() if high})


def read_to(warehouse: Path) -> Counter[int]:
    """Return the offset up to which each partition was read, according to coverage."""
    found: Counter[int] = Counter()
    for span in spans(warehouse) if has(warehouse, COVERAGE.name, "_delta_log", f"{0:020}.json") else ():
        if span["source"] == OFFSETS_TOPIC:
            found[span["source_partition"]] = max(found[span["source_partition"]], span["to_offset"])
    return found


def record_times(warehouse: Path) -> list[datetime]:
    """Return the times of the group's records, in the order in which they were written."""
    path = table_path(warehouse, COORDINATOR_RECORDS)
    rows = DeltaTable(path).to_pyarrow_table(columns=["source_offset", "record_at"]).to_pylist()
    return [row["record_at"] for row in sorted(rows, key=lambda row: row["source_offset"])]
