"""The stream from a real broker into Delta tables."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial

import deltalake
import pytest
from delta.tables import DeltaTable
from pyspark.errors import StreamingQueryException

from jobs.config.clusters import Cluster
from jobs.config.errors import UserError, one_line
from jobs.config.settings import Settings
from jobs.ingest import Writer, start
from jobs.kafka.source_position import RECREATED
from jobs.kafka.topic_streams import events
from jobs.spark.batch_merge import BatchMerge
from jobs.spark.streams import Streams
from jobs.tables.create_tables import create_tables
from jobs.tables.engine import connect
from jobs.tables.paths import table_path
from schemas.bronze import BRONZE, COORDINATOR_EVENTS, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from testing.warehouses.volume import refuse_in
from tests.source.offset_records import commit, deletion, group_record

LINE = (
    "[2026-11-21 10:00:00,123] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
    "Stabilized group orders generation 4 with 2 members. (org.apache.kafka.coordinator.group.GroupMetadataManager)"
)


@pytest.fixture
def tables(spark, warehouse):
    """The bronze tables, empty."""
    create_tables(spark, warehouse, BRONZE)
    return warehouse


def ingest(spark, warehouse, stream, **trigger):
    """Read all existing records; return the stream's finished query."""
    writer = Writer(stream=stream, warehouse=warehouse)
    writer.checkpoint.refuse_other_tables()
    query = writer.start(spark, trigger or {"availableNow": True})
    Streams([lambda: query], rests_s=()).wait()
    return query


def cut_off(*_):
    raise RuntimeError("cut off")


def rows(warehouse, table, *columns):
    return sorted(
        tuple(row.values())
        for row in deltalake.DeltaTable(table_path(warehouse, table))
        .to_pyarrow_table(columns=list(columns))
        .to_pylist()
    )


def offsets_read(warehouse):
    """Return (partition, offset) of every group record; first offset, last offset and count of runs."""
    return (
        rows(warehouse, COORDINATOR_RECORDS, "log_epoch", "source_partition", "source_offset"),
        rows(warehouse, OFFSET_COMMITS, "log_epoch", "source_partition", "first_offset", "last_offset", "commits"),
    )


def spans(warehouse):
    columns = ("log_epoch", "source_partition", "from_offset", "to_offset", "records", "gap_reason")
    return rows(warehouse, COVERAGE, *columns)


def history(count, start=0):
    """Every tenth record is a group record."""
    return [group_record(n, generation=n) if n % 10 == 0 else commit(n) for n in range(start, start + count)]


def test_batches_and_restarts_read_every_record_exactly_once(spark, tables, topic, stream):
    topic.write(history(1_500))
    topic.write(history(800), partition=1)
    query = ingest(spark, tables, stream)
    assert len(query.recentProgress) >= 3, "2,300 records in batches of 1,000"
    topic.write(history(200, start=1_500))
    ingest(spark, tables, stream)
    records, runs = offsets_read(tables)
    assert [(0, 0, n) for n in range(0, 1_700, 10)] + [(0, 1, n) for n in range(0, 800, 10)] == records
    assert 2_500 - len(records) == sum(run[-1] for run in runs)
    assert 2_500 == sum(span[4] for span in spans(tables))


def test_a_batch_that_failed_after_its_writes_is_read_again_and_not_written_twice(spark, tables, topic, stream):
    topic.write([*history(50), deletion(50), commit(51)])

    def fail(_):
        raise UserError("stopped here")

    writer = Writer(stream=stream, warehouse=tables, batch_merge=BatchMerge(fail))
    with pytest.raises(UserError, match="stopped here"):
        Streams([partial(writer.start, spark, {"availableNow": True})]).wait()
    written = offsets_read(tables), spans(tables)
    topic.write(history(5, start=52))
    again = []
    batch_merge = BatchMerge(lambda new: again.append({t: len(rows) for t, rows in new.items()}))
    repaired = replace(writer, batch_merge=batch_merge)
    Streams([partial(repaired.start, spark, {"availableNow": True})]).wait()
    assert 5 == again[0][COORDINATOR_RECORDS]
    records, runs = offsets_read(tables)
    assert written[0][0] == records
    assert set(written[0][1]) < set(runs)
    assert 57 == len(records) + sum(run[-1] for run in runs)


def failing(times, error):
    """Return a list for the sizes of batches, and a function that fails this many times and then accepts batches."""
    described = []

    def on_batch(new):
        described.append(len(new[COORDINATOR_RECORDS]))
        if len(described) <= times:
            raise error

    return described, on_batch


def test_what_fails_for_no_known_reason_is_started_again_and_goes_on_where_it_stopped(spark, tables, topic, stream):
    topic.write([*history(50), deletion(50), commit(51)])
    described, on_batch = failing(2, OSError("a worker died"))
    writer = Writer(stream=stream, warehouse=tables, batch_merge=BatchMerge(on_batch))
    failures = []
    streams = Streams(
        [partial(writer.start, spark, {"availableNow": True})], rests_s=(0.0, 0.1), on_failure=failures.append
    )
    streams.wait()
    assert ["OSError: a worker died"] * 2 == [one_line(failure) for failure in failures]
    assert [described[0]] * 3 == described
    records, runs = offsets_read(tables)
    assert 52 == len(records) + sum(run[-1] for run in runs)


def test_what_fails_again_and_again_is_given_up(spark, tables, topic, stream):
    topic.write(history(20))
    described, on_batch = failing(9, OSError("no memory"))
    writer = Writer(stream=stream, warehouse=tables, batch_merge=BatchMerge(on_batch))
    streams = Streams(
        [partial(writer.start, spark, {"availableNow": True})], rests_s=(0.0,), on_failure=lambda error: None
    )
    with pytest.raises(StreamingQueryException, match="no memory"):
        streams.wait()
    assert 2 == len(described)


@pytest.mark.parametrize("way", ["few rows", "files of tasks", "Spark"])
def test_however_bronze_is_written_it_and_what_is_handed_on_are_the_same(
    spark, warehouse, topic, stream, monkeypatch, way
) -> None:
    if way == "Spark":
        # Tables are clustered there, which only Spark writes.
        refuse_in(monkeypatch)
    create_tables(spark, warehouse, BRONZE)
    stream = replace(stream, few_bytes=0 if way == "files of tasks" else stream.few_bytes)
    topic.write([*history(50), deletion(50), commit(51)])
    topic.write(history(30), partition=1)
    described = []
    writer = Writer(stream=stream, warehouse=warehouse, batch_merge=BatchMerge(described.append))
    assert writer.is_local == (way != "Spark")
    Streams([partial(writer.start, spark, {"availableNow": True})]).wait()
    (new,) = described
    assert bool(new[COORDINATOR_RECORDS].files) == (way == "files of tasks")
    records, runs = offsets_read(warehouse)
    assert [(0, 0, n) for n in (0, 10, 20, 30, 40)] + [(0, 1, n) for n in (0, 10, 20)] == records
    assert 82 == len(records) + sum(run[-1] for run in runs)
    assert (len(records), len(runs)) == (len(new[COORDINATOR_RECORDS]), len(new[OFFSET_COMMITS]))
    with connect() as engine:
        new[OFFSET_COMMITS].show(engine)
        ((commits,),) = engine.execute("SELECT sum(commits) FROM offset_commits").fetchall()
    assert commits == sum(run[-1] for run in runs)
    assert 82 == sum(span[4] for span in spans(warehouse))


def test_a_lost_checkpoint_loses_and_repeats_nothing(spark, tables, topic, stream):
    topic.write(history(300))
    ingest(spark, tables, stream)
    shutil.rmtree(tables / "_checkpoints")
    topic.write(history(100, start=300))
    ingest(spark, tables, stream)
    records, runs = offsets_read(tables)
    assert [(0, 0, n) for n in range(0, 400, 10)] == records
    assert 360 == sum(run[-1] for run in runs)


def test_a_batch_cut_off_together_with_its_checkpoint_loses_and_repeats_nothing(spark, tables, topic, stream):
    topic.write(history(300))
    ingest(spark, tables, stream)
    topic.write([*history(40, start=300)])
    ingest(spark, tables, stream)
    # As after a crash before the last write: coverage ends earlier than the rows.
    DeltaTable.forPath(spark, table_path(tables, COVERAGE)).delete("to_offset = 340")
    shutil.rmtree(tables / "_checkpoints")
    topic.write(history(60, start=340))
    ingest(spark, tables, stream)
    records, runs = offsets_read(tables)
    assert [(0, 0, n) for n in range(0, 400, 10)] == records
    assert 360 == sum(run[-1] for run in runs)


def test_a_first_batch_after_a_lost_checkpoint_is_repeated_from_where_it_began(
    spark, tables, topic, stream, monkeypatch
):
    topic.write(history(300))
    ingest(spark, tables, stream)
    shutil.rmtree(tables / "_checkpoints")
    topic.write(history(100, start=300))
    with monkeypatch.context() as patch:
        # Spark has written the batch's offsets, and none of its rows are in the tables.
        patch.setattr(Writer, "_write_bronze", cut_off)
        with pytest.raises(StreamingQueryException, match="cut off"):
            ingest(spark, tables, stream)
    ingest(spark, tables, stream)
    records, runs = offsets_read(tables)
    assert [(0, 0, n) for n in range(0, 400, 10)] == records
    assert 360 == sum(run[-1] for run in runs)


def test_a_checkpoint_whose_tables_are_gone_is_refused(spark, tables, topic, stream):
    topic.write(history(10))
    ingest(spark, tables, stream)
    shutil.rmtree(tables / OFFSET_COMMITS.name)
    with pytest.raises(UserError, match=r"the table offset_commits, but that table in .* is missing or was replaced"):
        ingest(spark, tables, stream)
    create_tables(spark, tables, BRONZE)
    with pytest.raises(UserError, match="is missing or was replaced"):
        ingest(spark, tables, stream)


def test_a_topic_that_is_absent_is_waited_for(spark, tables, absent_topic, stream):
    ingest(spark, tables, stream)
    assert [] == spans(tables)
    absent_topic.create().write(history(3))
    ingest(spark, tables, stream)
    assert [(0, 0, 0, 3, 3, None)] == spans(tables)


def test_a_recreated_topic_is_read_from_its_beginning_in_a_new_epoch(spark, tables, topic, stream):
    topic.write(history(20))
    ingest(spark, tables, stream)
    topic.delete()
    topic.create().write(history(30))
    ingest(spark, tables, stream)
    expected = [
        (0, 0, 0, 20, 20, None),
        (0, 0, 20, 20, 0, RECREATED),
        (0, 1, 0, 0, 0, RECREATED),
        (1, 0, 0, 30, 30, None),
    ]
    assert expected == spans(tables)


def test_a_lost_checkpoint_of_a_recreated_topic_loses_and_repeats_nothing(spark, tables, topic, stream):
    topic.write(history(20))
    topic.write(history(25), partition=1)
    ingest(spark, tables, stream)
    topic.delete()
    topic.create().write(history(30))
    ingest(spark, tables, stream)
    shutil.rmtree(tables / "_checkpoints")
    topic.write(history(5, start=30))
    topic.write(history(40), partition=1)
    ingest(spark, tables, stream)
    later = [span for span in spans(tables) if span[0] == 1]
    assert [(1, 0, 0, 30, 30, None), (1, 0, 30, 35, 5, None), (1, 1, 0, 40, 40, None)] == later


def test_what_is_no_record_of_ours_is_in_quarantine_and_counted(spark, tables, topic, stream):
    topic.write([commit(0), commit(1)._replace(key=None), commit(2)._replace(value=b"\x00\x04?"), commit(3)])
    ingest(spark, tables, stream)
    assert [("null_key",), ("truncated",)] == rows(tables, QUARANTINE, "reason")
    assert [(4, 2)] == rows(tables, COVERAGE, "records", "quarantined")


def test_offsets_without_any_record_are_an_error_that_says_why(spark, tables, topic, stream, monkeypatch):
    topic.write_in_a_transaction([commit(0)])
    from confluent_kafka import TopicPartition

    # Only the marker is left: a log with offsets but without a record.
    (done,) = topic.admin.delete_records([TopicPartition(topic.name, 0, 1)]).values()
    done.result(120)
    with pytest.raises(UserError, match="returned no record"):
        ingest(spark, tables, stream)


def test_secrets_are_in_no_plan_progress_or_checkpoint(spark, tables, topic, stream, capfd):
    topic.write(history(5))
    canary = "canary-7f3a"
    armed = replace(stream, options={**stream.options, "sasl.password": canary})
    frame = armed.frame(spark)
    frame.explain(extended=True)
    query = ingest(spark, tables, armed)
    progress = str([p.json for p in query.recentProgress])
    kept = b"".join(path.read_bytes() for path in (tables / "_checkpoints").rglob("*") if path.is_file())
    captured = capfd.readouterr()
    assert canary not in captured.out + captured.err + progress + repr(armed)
    assert canary.encode() not in kept


def test_the_events_topic_gives_events_and_counts_what_is_no_lifecycle_line(spark, tables, topic, cluster):
    lines = [
        LINE.encode(),
        b"[2026-11-21 10:00:01,000] INFO Nothing of note (kafka.server.KafkaServer)",
        b'{"no": "line"}',
    ]
    topic.write([commit(0)._replace(key=None, value=line) for line in lines])
    ingest(spark, tables, events(replace(cluster, events_topic=topic.name), tasks=2))
    assert [("stabilized", f"{topic.name}-0", 0)] == rows(
        tables, COORDINATOR_EVENTS, "event_kind", "source_id", "line_no"
    )
    assert [(3, 1, 1)] == rows(tables, COVERAGE, "records", "skipped", "quarantined")


def test_without_a_broker_one_sentence_names_the_address(spark, warehouse, monkeypatch):
    monkeypatch.setattr("jobs.kafka.kafka_client.RESPONSE_WITHIN_S", 2.0)
    settings = Settings(warehouse=warehouse, clusters=(Cluster(name="c", bootstrap_servers="127.0.0.1:1"),))
    with pytest.raises(UserError, match=r"No Kafka broker answers at 127\.0\.0\.1:1"):
        start(spark, settings, once=True)


def test_a_warehouse_of_another_cluster_is_refused(spark, broker, warehouse):
    (warehouse / "_clusters").mkdir(parents=True)
    (warehouse / "_clusters" / "c").write_text("elsewhere")
    settings = Settings(warehouse=warehouse, clusters=(Cluster(name="c", bootstrap_servers=broker.bootstrap_servers),))
    with pytest.raises(UserError, match="stands for the Kafka cluster elsewhere"):
        start(spark, settings, once=True)
