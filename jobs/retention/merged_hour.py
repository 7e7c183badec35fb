"""One hour of `offset_commits` with its runs merged.

A busy cluster has millions of rows per hour, so they are processed in parts of whole partitions of the offsets topic.
Without Spark, the merged rows become data files that no commit refers to yet. The other rows of the original files are
copied in pieces into data files as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection

from dashboards.lake.lake import moment
from jobs.tables.disk.data_file import DataFile, write, write_pieces
from jobs.tables.engine import connect, files_with_matches, in_pieces, quoted, show, show_files
from jobs.tables.paths import table_path
from jobs.tables.silver_rows import current_files
from pipelines.arrow_types import row_type, schema_of
from pipelines.run_merging import merged
from schemas.bronze import COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from schemas.records import OFFSETS_TOPIC

HOUR_MS = 3_600_000
AT_ONCE = 300_000
"""Approximate number of rows in a part. Merging them takes some hundred MB."""

PARTITION = ("cluster", "log_epoch", "source_partition")
TopicPartition = tuple[str, int, int]
ReadUntil = Mapping[TopicPartition, int]
"""The offset after the last one read, by (cluster, log_epoch, source_partition)."""

INSIDE = "last_offset < upto AND last_commit_at >= $begin AND last_commit_at < $end"
"""SQL condition for rows of the hour in partitions of `read_until` that were complete when `coverage` was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """The result of merging: `gone` are replaced by the files `come`; `rows_read` rows became `became` rows."""

    rows_read: int
    became: int
    gone: tuple[str, ...] = ()
    come: tuple[DataFile, ...] = ()


def merged_hour(warehouse: Path, hour: int, read_until: ReadUntil) -> tuple[int, pa.Table]:
    """Return the number of rows in the hour that begins at `hour` (ms), and the merged rows."""
    rows_read, parts = 0, [schema_of(OFFSET_COMMITS).empty_table()]
    for part in _parts(warehouse, hour, read_until):
        rows, became = _merged_part(warehouse, hour, {partition: read_until[partition] for partition in part})
        rows_read += rows
        parts.append(became)
    return rows_read, pa.concat_tables(parts)


def merged_files(warehouse: Path, hour: int, read_until: ReadUntil) -> Replaced:
    """Return the merged rows as data files. If merging would save no row, write nothing."""
    rows_read, rows = merged_hour(warehouse, hour, read_until)
    if rows.num_rows == rows_read:
        return Replaced(rows_read=rows_read, became=rows_read)
    folder = Path(table_path(warehouse, OFFSET_COMMITS))
    gone = _holding(warehouse, hour, read_until)
    come = [write(folder, rows), write_pieces(folder, rows.schema, _other_rows(gone, hour, read_until, rows.schema))]
    if not come[-1].rows:
        (folder / come.pop().name).unlink()
    return Replaced(rows_read=rows_read, became=rows.num_rows, gone=tuple(gone), come=tuple(come))


def _parts(warehouse: Path, hour: int, read_until: ReadUntil) -> list[list[TopicPartition]]:
    """Return the partitions with rows in the hour, grouped into parts."""
    with connect() as engine:
        _show_read_until(engine, read_until)
        _show_hour(engine, warehouse, hour)
        counted = engine.sql(
            f"SELECT {quoted(PARTITION)}, count(*) FROM stored JOIN covered USING ({quoted(PARTITION)}) WHERE {INSIDE} "  # noqa: S608 - our own names
            "GROUP BY ALL ORDER BY ALL",
            params=_span(hour),
        ).fetchall()
    parts: list[list[TopicPartition]] = []
    room = 0
    for *partition, rows in counted:
        if rows > room:
            parts.append([])
            room = AT_ONCE
        parts[-1].append((partition[0], partition[1], partition[2]))
        room -= rows
    return parts


def _merged_part(warehouse: Path, hour: int, read_until: ReadUntil) -> tuple[int, pa.Table]:
    partitions = quoted(PARTITION)
    with connect() as engine:
        _show_read_until(engine, read_until)
        _show_hour(engine, warehouse, hour)
        fragments = engine.sql(
            f"SELECT {_columns('stored')} FROM stored JOIN covered USING ({partitions}) WHERE {INSIDE}",  # noqa: S608 - our own names
            params=_span(hour),
        ).to_arrow_table()
        engine.register("fragments", fragments)
        show(engine, "records", warehouse, COORDINATOR_RECORDS, columns=(*PARTITION, "group_id", "source_offset"))
        records = engine.sql(
            f"SELECT {partitions}, group_id, source_offset FROM records SEMI JOIN covered USING ({partitions}) "  # noqa: S608 - our own names
            "WHERE source_offset "
            "BETWEEN (SELECT min(first_offset) FROM fragments) AND (SELECT max(last_offset) FROM fragments)"
        ).to_arrow_table()
        show(engine, "kept", warehouse, QUARANTINE, columns=(*PARTITION, "source", "source_offset"))
        unread = engine.sql(
            f"SELECT {partitions}, source_offset FROM kept SEMI JOIN covered USING ({partitions}) WHERE source = $1",  # noqa: S608 - our own names
            params=[OFFSETS_TOPIC],
        ).to_arrow_table()
    return fragments.num_rows, merged(fragments, records, unread)


def _holding(warehouse: Path, hour: int, read_until: ReadUntil) -> list[str]:
    """Return the files that contain rows to replace."""
    files = current_files(warehouse, OFFSET_COMMITS, ("last_commit_at", hour))
    with connect() as engine:
        _show_read_until(engine, read_until)
        return files_with_matches(
            engine, files, f"JOIN covered USING ({quoted(PARTITION)}) WHERE {INSIDE}", **_span(hour)
        )


def _other_rows(files: Sequence[str], hour: int, read_until: ReadUntil, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the other rows of these files."""
    with connect() as engine:
        _show_read_until(engine, read_until)
        show_files(engine, "held", OFFSET_COMMITS, files)
        found = engine.sql(
            f"SELECT {_columns('held')} FROM held LEFT JOIN covered USING ({quoted(PARTITION)}) "  # noqa: S608 - our own names
            f"WHERE NOT coalesce({INSIDE}, false)",
            params=_span(hour),
        )
        yield from in_pieces(found, schema)


def _show_hour(engine: DuckDBPyConnection, warehouse: Path, hour: int) -> None:
    end = f"last_commit_at < timestamp_millis({hour + HOUR_MS:d})"
    show(engine, "stored", warehouse, OFFSET_COMMITS, since=("last_commit_at", hour), where=end)


def _show_read_until(engine: DuckDBPyConnection, read_until: ReadUntil) -> None:
    kind = pa.schema([*(row_type(COVERAGE).field(name) for name in PARTITION), ("upto", pa.int64())])
    rows = [dict(zip((*PARTITION, "upto"), (*partition, upto), strict=True)) for partition, upto in read_until.items()]
    engine.register("covered", pa.Table.from_pylist(rows, schema=kind))


def _span(hour: int) -> dict[str, datetime]:
    return {"begin": moment(hour), "end": moment(hour + HOUR_MS)}


def _columns(table: str) -> str:
    return ", ".join(f'{table}."{name}"' for name in OFFSET_COMMITS.names)
