"""An hour of `offset_commits` with its runs merged.

Hours of a busy cluster have millions of rows: they are taken up in parts, each of whole partitions of the offsets
topic. Without Spark they become data files that no commit mentions yet, and so do the rows beside them in the files
that held them, which go through in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection

from dashboards.lake.lake import moment
from jobs.tables.data_file import DataFile, write, write_pieces
from jobs.tables.delta_io import table_path
from jobs.tables.engine import connect, files_with_matches, in_pieces, quoted, show, show_files
from jobs.tables.silver_rows import standing_files
from pipelines.arrow_types import row_type, schema_of
from pipelines.bronze_batch import TOPIC
from pipelines.run_merging import merged
from schemas.bronze import COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE

HOUR_MS = 3_600_000
AT_ONCE = 300_000
"""Rows of a part, about: merging them takes some hundred MB."""

PLACE = ("cluster", "log_epoch", "source_partition")
Place = tuple[str, int, int]
Covered = Mapping[Place, int]
"""One past the last offset that was read, by (cluster, log_epoch, source_partition)."""

INSIDE = "last_offset < upto AND last_commit_at >= $begin AND last_commit_at < $end"
"""Of which rows, beside what is `covered`: those of an hour that were all there when `coverage` was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """Data files that hold what the files `gone` held, merged, and how many rows `looked` at they now are."""

    looked: int
    became: int
    gone: tuple[str, ...] = ()
    come: tuple[DataFile, ...] = ()


def merged_hour(warehouse: Path, hour: int, covered: Covered) -> tuple[int, pa.Table]:
    """How many rows of the hour that begins at `hour` milliseconds were looked at, and what they become."""
    looked, parts = 0, [schema_of(OFFSET_COMMITS).empty_table()]
    for part in _parts(warehouse, hour, covered):
        rows, became = _merged_part(warehouse, hour, {place: covered[place] for place in part})
        looked += rows
        parts.append(became)
    return looked, pa.concat_tables(parts)


def merged_files(warehouse: Path, hour: int, covered: Covered) -> Replaced:
    """The same as data files; nothing is written where no row fewer would be left."""
    looked, rows = merged_hour(warehouse, hour, covered)
    if rows.num_rows == looked:
        return Replaced(looked=looked, became=looked)
    folder = Path(table_path(warehouse, OFFSET_COMMITS))
    gone = _holding(warehouse, hour, covered)
    come = [write(folder, rows), write_pieces(folder, rows.schema, _beside(gone, hour, covered, rows.schema))]
    if not come[-1].rows:
        (folder / come.pop().name).unlink()
    return Replaced(looked=looked, became=rows.num_rows, gone=tuple(gone), come=tuple(come))


def _parts(warehouse: Path, hour: int, covered: Covered) -> list[list[Place]]:
    """The partitions with rows of the hour, put together as parts."""
    with connect() as engine:
        _show_covered(engine, covered)
        show(engine, "stored", warehouse, OFFSET_COMMITS, since=("last_commit_at", hour))
        counted = engine.sql(
            f"SELECT {quoted(PLACE)}, count(*) FROM stored JOIN covered USING ({quoted(PLACE)}) WHERE {INSIDE} "  # noqa: S608 - our own names
            "GROUP BY ALL ORDER BY ALL",
            params=_span(hour),
        ).fetchall()
    parts: list[list[Place]] = []
    room = 0
    for *place, rows in counted:
        if rows > room:
            parts.append([])
            room = AT_ONCE
        parts[-1].append((place[0], place[1], place[2]))
        room -= rows
    return parts


def _merged_part(warehouse: Path, hour: int, covered: Covered) -> tuple[int, pa.Table]:
    places = quoted(PLACE)
    with connect() as engine:
        _show_covered(engine, covered)
        show(engine, "stored", warehouse, OFFSET_COMMITS, since=("last_commit_at", hour))
        fragments = engine.sql(
            f"SELECT {_columns('stored')} FROM stored JOIN covered USING ({places}) WHERE {INSIDE}",  # noqa: S608 - our own names
            params=_span(hour),
        ).to_arrow_table()
        engine.register("fragments", fragments)
        show(engine, "records", warehouse, COORDINATOR_RECORDS)
        records = engine.sql(
            f"SELECT {places}, group_id, source_offset FROM records SEMI JOIN covered USING ({places}) "  # noqa: S608 - our own names
            "WHERE source_offset "
            "BETWEEN (SELECT min(first_offset) FROM fragments) AND (SELECT max(last_offset) FROM fragments)"
        ).to_arrow_table()
        show(engine, "kept", warehouse, QUARANTINE)
        unread = engine.sql(
            f"SELECT {places}, source_offset FROM kept SEMI JOIN covered USING ({places}) WHERE source = $1",  # noqa: S608 - our own names
            params=[TOPIC],
        ).to_arrow_table()
    return fragments.num_rows, merged(fragments, records, unread)


def _holding(warehouse: Path, hour: int, covered: Covered) -> list[str]:
    """The files with rows that are replaced."""
    files = standing_files(warehouse, OFFSET_COMMITS, ("last_commit_at", hour))
    with connect() as engine:
        _show_covered(engine, covered)
        return files_with_matches(engine, files, f"JOIN covered USING ({quoted(PLACE)}) WHERE {INSIDE}", **_span(hour))


def _beside(files: Sequence[str], hour: int, covered: Covered, schema: pa.Schema) -> Iterator[pa.Table]:
    """The other rows of these files."""
    with connect() as engine:
        _show_covered(engine, covered)
        show_files(engine, "held", OFFSET_COMMITS, files)
        found = engine.sql(
            f"SELECT {_columns('held')} FROM held LEFT JOIN covered USING ({quoted(PLACE)}) "  # noqa: S608 - our own names
            f"WHERE NOT coalesce({INSIDE}, false)",
            params=_span(hour),
        )
        yield from in_pieces(found, schema)


def _show_covered(engine: DuckDBPyConnection, covered: Covered) -> None:
    kind = pa.schema([*(row_type(COVERAGE).field(name) for name in PLACE), ("upto", pa.int64())])
    told = [dict(zip((*PLACE, "upto"), (*place, upto), strict=True)) for place, upto in covered.items()]
    engine.register("covered", pa.Table.from_pylist(told, schema=kind))


def _span(hour: int) -> dict[str, datetime]:
    return {"begin": moment(hour), "end": moment(hour + HOUR_MS)}


def _columns(table: str) -> str:
    return ", ".join(f'{table}."{name}"' for name in OFFSET_COMMITS.names)
