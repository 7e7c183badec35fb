"""The first read of a topic without Spark writes the rows of the stream, and the stream continues from there."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace

import deltalake
import pytest

from jobs import ingest, up
from jobs.config.errors import PassingError, UserError
from jobs.config.settings import Settings
from jobs.ingest import Writer
from jobs.kafka.first_read import batches
from jobs.kafka.resume import resume
from jobs.kafka.source_position import RECREATED
from jobs.processes.runs import Runs
from jobs.spark.streams import Streams
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from jobs.tables.tables import FolderTables
from schemas.bronze import BRONZE, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from schemas.silver import GROUPS, SILVER
from tests.source.offset_records import commit, deletion, group_record

TABLES = (COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE, COVERAGE)


def history(count, start=0):
    """Return group records, deletions, commits of two groups, and some records that cannot be decoded."""
    for n in range(start, start + count):
        yield (
            group_record(n, generation=n, at_ms=n + 1)
            if n % 10 == 0
            else deletion(n, at_ms=n + 1)
            if n % 97 == 1
            else commit(n, at_ms=n + 1)._replace(value=b"\x00\x63")
            if n % 211 == 2
            else commit(n, f"group-{n % 2}", at_ms=n + 1, metadata="note" if n % 5 == 0 else "")
        )


def rows(warehouse):
    """Return every row of the tables as text, in order."""
    return {
        table.name: sorted(map(str, deltalake.DeltaTable(table_path(warehouse, table)).to_pyarrow_table().to_pylist()))
        for table in TABLES
    }


def by_stream(spark, warehouse, stream) -> None:
    writer = Writer(stream=stream, warehouse=warehouse)
    Streams([lambda: writer.start(spark, {"availableNow": True})], rests_s=()).wait()


@pytest.fixture
def once(cluster, stream, warehouse, monkeypatch):
    """Run `regroup ingest --once` on the test's topic; starting a session is an error unless one is given."""

    def run(spark=None, many=1) -> None:
        def session(*_, **__):
            assert spark is not None, "a session was started"
            return spark

        monkeypatch.setattr(ingest, "topics", lambda *_, **__: [stream])
        monkeypatch.setattr(ingest, "session_of", session)
        monkeypatch.setattr(ingest, "MANY", many)
        settings = Settings(warehouse=warehouse, clusters=(cluster,))
        assert 0 == ingest.run(settings, argparse.Namespace(once=True))

    return run


def test_it_writes_what_the_stream_writes_and_the_stream_goes_on(spark, topic, stream, once, warehouse, tmp_path):
    topic.write(history(1_500))
    topic.write(history(800), partition=1)
    once()
    other = tmp_path / "other"
    create_tables(spark, other, BRONZE)
    by_stream(spark, other, stream)
    assert rows(other) == rows(warehouse)
    topic.write(history(200, start=1_500))
    once(spark)
    by_stream(spark, other, stream)
    assert rows(other) == rows(warehouse)
    read = deltalake.DeltaTable(table_path(warehouse, COVERAGE)).to_pyarrow_table(columns=["records"])
    assert 2_500 == sum(read.column("records").to_pylist())


def test_a_topic_that_was_recreated_after_it_is_another(spark, topic, stream, once, warehouse):
    topic.write(history(20))
    once()
    topic.delete()
    topic.create()
    topic.write(history(50))
    once(spark)
    spans = deltalake.DeltaTable(table_path(warehouse, COVERAGE)).to_pyarrow_table().to_pylist()
    assert [(0, 20, None), (0, 0, RECREATED), (1, 50, None)] == sorted(
        ((span["log_epoch"], span["records"], span["gap_reason"]) for span in spans if span["source_partition"] == 0),
        key=lambda span: (span[0], -span[1]),
    )


@pytest.mark.parametrize("error", [OSError("the disk"), PassingError("the brokers")])
def test_after_a_failure_the_stream_goes_on_without_the_unfinished_batch(
    error, spark, topic, stream, once, warehouse, monkeypatch, capsys
):
    topic.write(history(2_500))
    append, batches_covered = ingest.append, []

    def failing(session, folder, new, once_only):
        if new.table is COVERAGE and once_only is None:
            batches_covered.append(new)
            if len(batches_covered) == 2:
                raise error
        append(session, folder, new, once_only)

    monkeypatch.setattr(ingest, "append", failing)
    once(spark)
    assert f"Reading failed and is restarted: {error}\n" in capsys.readouterr().out
    covered = deltalake.DeltaTable(table_path(warehouse, COVERAGE)).to_pyarrow_table().to_pylist()
    assert 2_500 == sum(span["records"] for span in covered)
    commits = deltalake.DeltaTable(table_path(warehouse, OFFSET_COMMITS)).to_pyarrow_table().to_pylist()
    groups = deltalake.DeltaTable(table_path(warehouse, COORDINATOR_RECORDS)).to_pyarrow_table().num_rows
    # Twice for the unfinished batch, because `quarantine` names the real topic and not the test's.
    unread = deltalake.DeltaTable(table_path(warehouse, QUARANTINE)).to_pyarrow_table().column("source_offset")
    refused = len(set(unread.to_pylist()))
    assert 2_500 == sum(run["commits"] for run in commits) + groups + refused


def test_what_cannot_be_read_is_one_sentence_and_nothing_is_covered(topic, once, warehouse):
    topic.write(commit(n)._replace(value=b"\x00\x63") for n in range(1_500))
    with pytest.raises(UserError, match=r"^Reading stopped before more was written: "):
        once()
    assert [] == rows(warehouse)[COVERAGE.name]


def test_after_it_a_stream_hands_on_only_new_rows(spark, topic, stream, cluster, warehouse, monkeypatch) -> None:
    topic.write(history(1_500))
    monkeypatch.setattr(ingest, "topics", lambda *_, **__: [stream])
    monkeypatch.setattr(ingest, "MANY", 1)
    settings, lines, handed_on = Settings(warehouse=warehouse, clusters=(cluster,)), [], []
    writers = ingest.read_first(settings, say=lines.append)
    assert [f"{records:,} records of {stream.topic} on c are in bronze" for records in (1_000, 1_500)] == lines
    topic.write(history(200, start=1_500))
    ingest.start(spark, settings, once=True, on_batch=handed_on.append, writers=writers).wait()
    assert 200 == sum(span["records"] for new in handed_on for span in new[COVERAGE].few.to_pylist())


def test_up_reads_and_builds_without_spark_and_builds_what_was_only_read(
    topic, stream, cluster, warehouse, monkeypatch
) -> None:
    topic.write(history(1_500))
    monkeypatch.setattr(ingest, "topics", lambda *_, **__: [stream])
    monkeypatch.setattr(ingest, "MANY", 1)
    settings, lines = Settings(warehouse=warehouse, clusters=(cluster,)), []
    warehouse.mkdir()
    with Runs(tables=FolderTables(warehouse), job="up", say=lines.append) as runs:
        (writer,) = up._read_and_build_first(settings, lines.append, runs)
    assert writer.first.is_complete
    assert lines[-1] == "All that was read is in silver"
    built = groups_of(warehouse)
    assert {"g", "group-0", "group-1"} == built
    for table in SILVER:
        shutil.rmtree(table_path(warehouse, table))
    with Runs(tables=FolderTables(warehouse), job="up", say=lines.append) as runs:
        (writer,) = up._read_and_build_first(settings, lines.append, runs)
    assert writer.first.position is None, "the stream continues where bronze ends"
    assert groups_of(warehouse) == built


def groups_of(warehouse) -> set[str]:
    found = deltalake.DeltaTable(table_path(warehouse, GROUPS)).to_pyarrow_table(columns=["group_id"])
    return set(found.column("group_id").to_pylist())


def test_few_records_are_left_to_the_stream(topic, stream, once, warehouse):
    topic.write(history(20))
    with pytest.raises(AssertionError, match="a session was started"):
        once(many=21)
    assert [] == rows(warehouse)[COVERAGE.name]
    assert [] == list(batches(replace(stream, topic="regroup-nowhere")))


def test_a_note_counts_only_where_coverage_ends(spark, topic, stream, once, warehouse):
    topic.write(history(20))
    once()
    assert resume(spark, warehouse, stream).topic_id
    checkpoint = Writer(stream=stream, warehouse=warehouse).checkpoint.path
    note = checkpoint.with_name(f"{checkpoint.name}.first-read.json")
    note.write_text(note.read_text().replace("20", "19"))
    assert resume(spark, warehouse, stream).topic_id is None
    note.write_text("{")
    assert resume(spark, warehouse, stream).topic_id is None
