"""`regroup mark` writes to a real broker, and the mark is in the tables with its batch."""

from __future__ import annotations

from functools import partial

import deltalake
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from jobs.cli import main
from jobs.config.clusters import Cluster
from jobs.config.settings import Settings
from jobs.ingest import Writer
from jobs.kafka.topic_streams import events
from jobs.replay import CaptureRecords, replay
from jobs.silver.build_marks import rebuild_all_marks, update_marks
from jobs.spark.batch_merge import BatchMerge
from jobs.spark.streams import Streams
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, QUARANTINE
from schemas.gold import MARKS
from schemas.silver import REASSIGNMENT_TABLES, SILVER

TIMES = ("2026-11-21T12:01:40Z", "2026-11-21T12:05:00Z")


def rows(warehouse, table=MARKS) -> list[dict]:
    found = deltalake.DeltaTable(table_path(warehouse, table)).to_pyarrow_table(columns=list(table.names)).to_pylist()
    return sorted(found, key=repr)


@pytest.fixture
def marked(broker, monkeypatch) -> Cluster:
    cluster = Cluster(name="kafka", bootstrap_servers=broker.bootstrap_servers, events_topic="marked")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(cluster.events_topic, 1, 1)])[cluster.events_topic].result(120)
    for at in (*TIMES, TIMES[0]):
        target = ["--bootstrap-servers", broker.bootstrap_servers, "--topic", cluster.events_topic]
        assert 0 == main(["mark", "v2.31", "--at", at, "--group", "billing", "--by", "ci", *target])
    return cluster


def test_a_mark_is_there_with_its_batch_once_and_after_a_rebuild(spark, warehouse, marked) -> None:
    create_tables(spark, warehouse, (*BRONZE, MARKS))
    seen = []

    def on_batch(new) -> None:
        update_marks(spark, warehouse, new[ADMIN_OBSERVATIONS])
        seen.append(rows(warehouse))

    writer = Writer(stream=events(marked, tasks=1), warehouse=warehouse, batch_merge=BatchMerge(on_batch))
    Streams([partial(writer.start, spark, {"availableNow": True})]).wait()
    assert [("deploy", "v2.31", "billing", ["billing"], "ci")] * 2 == [tuple(row.values())[2:7] for row in seen[-1]]
    assert 3 == len(rows(warehouse, ADMIN_OBSERVATIONS))
    rebuild_all_marks(spark, warehouse)
    assert seen[-1] == rows(warehouse)


def test_a_capture_may_hold_marks_and_any_batching_gives_the_same(spark, warehouse) -> None:
    create_tables(spark, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    printed = [
        {"observed_at_ms": 1795262600000, "source": "mark", "kind": "mark", "text": "v2", "at": TIMES[0], **more}
        for more in ({"group_id": "a"}, {"group_id": "b"}, {"at": "soon"}, {"at": TIMES[1], "mark_kind": "incident"})
    ]
    settings = Settings(warehouse=warehouse)
    for number, body in enumerate(printed, 1):
        replay(spark, settings, "kafka", {}, CaptureRecords(observations=[(number, body)]))
    found = rows(warehouse)
    assert [("other", "v2", None), ("incident", "v2", None)] == [tuple(row.values())[2:5] for row in found]
    assert [("admin.jsonl", 3, "invalid_timestamp")] == [
        (row["source"], row["source_offset"], row["reason"]) for row in rows(warehouse, QUARANTINE)
    ]
    rebuild_all_marks(spark, warehouse)
    assert found == rows(warehouse)


def test_a_mark_without_text_is_one_sentence(capsys) -> None:
    assert 2 == main(["mark", " ", "--bootstrap-servers", "127.0.0.1:1"])
    assert "regroup mark: Nothing was sent: the mark has no text.\n" == capsys.readouterr().err
