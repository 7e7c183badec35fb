"""Log files into bronze: each line once, across growth, rotation and restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException

from jobs.config.clusters import LogFile
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.ingest import Writer
from jobs.kafka.log_source import LogReader, LogStream
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from schemas.bronze import BRONZE, COORDINATOR_EVENTS, COVERAGE
from tests.coordinator_log.lines import NEW, line


def stabilized(generation: int) -> str:
    return line(f"{NEW}Stabilized group orders generation {generation} with 3 members.") + "\n"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(stabilized(1) + "something else\n" + stabilized(2), encoding="utf-8")
    return path


def stream(log: Path) -> LogStream:
    return LogStream(cluster="c", logs=(LogFile(path=str(log), broker_id=4),))


@pytest.fixture
def opened():
    """A reader as Spark makes one, stopped at the end."""
    made: list[LogReader] = []

    def reader(log: Path) -> LogReader:
        made.append(LogReader(stream(log)))
        return made[-1]

    yield reader
    for each in made:
        each.stop()


def rows(reader: LogReader, start: dict, end: dict, table: str) -> list[dict]:
    return [
        row[table]
        for stretch in reader.partitions(start, end)
        for batch in reader.read(stretch)
        for row in batch.to_pylist()
        if row[table] is not None
    ]


def test_a_planned_batch_read_again_gives_the_same_rows_though_the_file_was_rotated(log, opened):
    reader = opened(log)
    start = reader.initialOffset()
    first = reader.latestOffset(start, reader.getDefaultReadLimit())
    log.rename(log.with_suffix(".log.1"))
    log.write_text(stabilized(3), encoding="utf-8")
    second = reader.latestOffset(first, reader.getDefaultReadLimit())
    for again in (reader, opened(log)):
        for after, end, expected in ((start, first, [(1, 1), (3, 2)]), (first, second, [(4, 3)])):
            found = rows(again, after, end, COORDINATOR_EVENTS.name)
            assert expected == [(row["line_no"], row["generation_id"]) for row in found]


def test_lines_that_are_gone_before_they_were_stored_are_a_gap(log, opened):
    reader = opened(log)
    end = reader.latestOffset({}, reader.getDefaultReadLimit())
    log.unlink()
    log.write_text(stabilized(9), encoding="utf-8")
    assert [] == rows(opened(log), {}, end, COORDINATOR_EVENTS.name)
    [covered] = rows(opened(log), {}, end, COVERAGE.name)
    assert (True, 1, 4) == (covered["is_gap"], covered["from_offset"], covered["to_offset"])


def test_a_first_batch_is_repeated_from_where_it_began_though_the_file_was_rotated(spark, log, tmp_path, monkeypatch):
    settings = Settings(warehouse=tmp_path / "warehouse")
    create_tables(spark, settings.warehouse, BRONZE)
    expected = len(log.read_text(encoding="utf-8").splitlines())

    def started():
        return Writer(stream=stream(log), warehouse=settings.warehouse).start(spark, {"availableNow": True})

    def cut_off(*_):
        raise RuntimeError("cut off")

    with monkeypatch.context() as patch:
        # Spark has written the batch's offsets, and none of its rows are in the tables.
        patch.setattr(Writer, "_write_bronze", cut_off)
        with pytest.raises(StreamingQueryException, match="cut off"):
            started().awaitTermination()
    log.rename(log.with_suffix(".log.1"))
    log.write_text(stabilized(9), encoding="utf-8")
    for _ in range(2):
        started().awaitTermination()
    covered = DeltaTable(table_path(settings.warehouse, COVERAGE)).to_pyarrow_table().to_pylist()
    spans = sorted((row["is_gap"], row["from_offset"], row["to_offset"]) for row in covered)
    assert [(False, 1, expected + 1), (False, expected + 1, expected + 2)] == spans


def test_a_missing_file_is_named(tmp_path, opened):
    with pytest.raises(UserError, match=r"no log file .*absent\.log"):
        opened(tmp_path / "absent.log").latestOffset({}, opened(tmp_path).getDefaultReadLimit())


def test_a_stream_that_is_started_again_goes_on_where_it_was(spark, log, tmp_path):
    settings = Settings(warehouse=tmp_path / "warehouse")
    create_tables(spark, settings.warehouse, BRONZE)
    for more in ("", stabilized(3), stabilized(4) + "half a li"):
        with log.open("a", encoding="utf-8") as file:
            file.write(more)
        writer = Writer(stream=stream(log), warehouse=settings.warehouse)
        writer.start(spark, {"availableNow": True}).awaitTermination()
    events = DeltaTable(table_path(settings.warehouse, COORDINATOR_EVENTS)).to_pyarrow_table().to_pylist()
    assert [1, 2, 3, 4] == sorted(row["generation_id"] for row in events)
    covered = DeltaTable(table_path(settings.warehouse, COVERAGE)).to_pyarrow_table().to_pylist()
    assert [(1, 4), (4, 5), (5, 6)] == sorted((row["from_offset"], row["to_offset"]) for row in covered)
