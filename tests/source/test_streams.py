"""Streams are restarted after temporary and after other failures; with a real broker that goes away."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from jobs.config.clusters import Cluster
from jobs.config.errors import LateWorkerError, PassingError, UserError
from jobs.config.settings import Settings
from jobs.ingest import start
from jobs.lab.broker import Broker
from jobs.spark.streams import CALM_S, MORE_RESTS, Streams
from jobs.tables.create_tables import create_tables
from schemas.bronze import BRONZE, COVERAGE
from testing.waiting import wait_until
from tests.jobs.conftest import CLUSTER, record
from tests.source.test_stream import rows


@pytest.mark.faults
def test_while_a_broker_is_away_its_streams_begin_again_and_then_go_on(spark, warehouse, tmp_path) -> None:
    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1}
    with Broker(tmp_path / "broker", overrides=overrides) as broker:
        cluster = Cluster(name=CLUSTER, bootstrap_servers=broker.bootstrap_servers)
        record(cluster)
        settings = Settings(warehouse=warehouse, clusters=(cluster,), trigger_seconds=0.5)
        create_tables(spark, warehouse, BRONZE)
        failures: list[Exception] = []
        streams = start(spark, settings, on_failure=failures.append)

        def goes_on() -> bool:
            assert streams.restart_due()
            return bool(rows(warehouse, COVERAGE, "to_offset"))

        try:
            wait_until(goes_on)
            before = rows(warehouse, COVERAGE, "to_offset")
            broker.stop()
            wait_until(lambda: streams.restart_due() and len(failures) > 0)
            broker.start()
            producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
            producer.produce(cluster.events_topic, b"a line of somebody else's")
            assert producer.flush(120) == 0
            wait_until(lambda: streams.restart_due() and len(rows(warehouse, COVERAGE, "to_offset")) > len(before))
        finally:
            streams.stop()
    assert {PassingError} == {type(failure) for failure in failures}
    assert all(f"No Kafka broker answers at {cluster.bootstrap_servers}" in str(failure) for failure in failures)


class Ended:
    """A query that ended with this exception; the test above has real ones."""

    isActive = False  # noqa: N815 - Spark's name

    def __init__(self, error: str) -> None:
        self._error = error

    def exception(self) -> Exception:
        return Exception(f"[STREAM_FAILED] trace\njobs.config.errors.{self._error}: broken\nmore")

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's
        return True

    def stop(self) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "is_endless", "kind", "starts"),
    [
        ("UserError", True, UserError, 1),
        ("PassingError", False, PassingError, 1),
        ("OSError", True, Exception, 3),
        # A worker that connects too late is not broken: Spark waits only ten seconds for it.
        ("CANNOT_OPEN_SOCKET", False, LateWorkerError, 3 + MORE_RESTS),
    ],
)
def test_what_cannot_pass_ends_all_at_once_and_the_rest_after_its_last_rest(error, is_endless, kind, starts) -> None:
    begun = []

    def begin():
        begun.append(1)
        return Ended(error)

    streams = Streams([begin], rests_s=(0.0, 0.0), on_failure=lambda _: None, is_endless=is_endless)
    with pytest.raises(kind, match=r"broken|did not start"):
        streams.wait()
    assert starts == len(begun)


@pytest.mark.parametrize("error", ["PassingError", "Python worker failed to connect back.", "[CANNOT_OPEN_SOCKET] a"])
def test_what_may_pass_is_tried_for_ever(error) -> None:
    failures: list[Exception] = []
    streams = Streams([lambda: Ended(error)], rests_s=(0.0, 0.0), on_failure=failures.append, is_endless=True)
    for _ in range(40):
        assert streams.restart_due()
    assert 20 == len(failures)


def test_what_fails_long_after_its_start_has_its_first_failure_again(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("jobs.spark.streams.time.monotonic", lambda: now[0])
    failures: list[Exception] = []
    streams = Streams([lambda: Ended("OSError")], rests_s=(0.0,), on_failure=failures.append)
    for _ in range(6):
        now[0] += CALM_S + 1
        streams.restart_due()
        streams.restart_due()
    assert len(failures) >= 3
