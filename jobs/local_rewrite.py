"""Rows of a Delta table on a machine of one's own changed in one commit, by Arrow and deltalake.

For the few thousand rows that a batch changes, Spark takes a second of a core to plan and run a MERGE; to read the
files that hold them and write these again takes some hundredths. deltalake's own MERGE is not it: it leaves files whose
strings Arrow cannot filter.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from jobs.engine import connect, quoted, show_files
from jobs.full_disk import refuse_full
from jobs.silver_rows import datafiles, instant
from schemas.tables import Table

LONGEST = 200
"""Characters of a text that is told as a file's least or greatest."""


def rewrite(
    path: str, table: Table, new: pa.Table, changed: pa.Table, gone: pa.Table, since: tuple[str, int] | None
) -> None:
    """Add `new`, put `changed` in the place of the rows with the same keys and take away those with the keys of `gone`.

    Args:
        path: where the table is.
        table: which it is.
        new: rows whose keys it does not have; they get a file of their own, since they are what will change next.
        changed: rows whose keys it has.
        gone: rows whose keys it has.
        since: an instant (column and milliseconds) that no row which is replaced is from before; other rows of the
            files that hold them which are get a file of their own.

    Raises:
        CommitFailedError: there was another commit meanwhile.
    """
    stored = DeltaTable(path)
    keys = pa.concat_tables([changed.select(table.key), gone.select(table.key)])
    files = datafiles(path, stored, since)
    holding = _holding(files, table, keys) if files and keys.num_rows else []
    others = pa.concat_tables([changed, _without(holding, table, keys, changed.schema)]) if holding else changed
    commit(path, stored, removed=holding, added=(new, *_by_age(others, since)))


def _by_age(rows: pa.Table, since: tuple[str, int] | None) -> tuple[pa.Table, ...]:
    """Rows from before `since` apart: they hardly change again, and need not be written again with those that do."""
    if since is None:
        return (rows,)
    is_old = pc.fill_null(pc.less(rows[since[0]], instant(since[1])), fill_value=False)
    return rows.filter(is_old), rows.filter(pc.invert(is_old))


def commit(
    path: str,
    stored: DeltaTable,
    *,
    removed: Sequence[str],
    added: Sequence[pa.Table],
    transactions: list[Transaction] | None = None,
) -> None:
    """Take data files out of the table at `path`, as it is `stored`, and add one for each of the tables with rows.

    Raises:
        CommitFailedError: there was another commit meanwhile.
        OSError: the disk is full.
    """
    now = round(time.time() * 1000)
    gone = [RemoveAction(path=Path(file).name, data_change=True, deletion_timestamp=now) for file in removed]
    come = [_written(Path(path), rows, now) for rows in added if rows.num_rows]
    refuse_full(Path(path))
    # After any other commit all is looked at again: deltalake itself would let files be removed twice, once by who
    # compacts them, which leaves their rows twice.
    once = CommitProperties(max_commit_retries=0, app_transactions=transactions)
    stored.create_write_transaction([*gone, *come], mode="append", schema=stored.schema(), commit_properties=once)


def _holding(files: Sequence[str], table: Table, keys: pa.Table) -> list[str]:
    """Those of the files that hold a row with one of the keys."""
    with connect() as engine:
        engine.register("found", engine.read_parquet(list(files), filename=True))
        engine.register("keys", keys)
        rows = engine.sql(f"SELECT DISTINCT filename FROM found SEMI JOIN keys USING ({quoted(table.key)})").fetchall()  # noqa: S608 - our own names
    return sorted(file for (file,) in rows)


def _without(files: Sequence[str], table: Table, keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows of the files that have none of the keys."""
    with connect() as engine:
        show_files(engine, "found", table, files)
        engine.register("keys", keys)
        rows = engine.sql(f"SELECT * FROM found ANTI JOIN keys USING ({quoted(table.key)})").to_arrow_table()  # noqa: S608 - our own names
    return rows.select(schema.names).cast(schema)


def _written(folder: Path, rows: pa.Table, now: int) -> AddAction:
    """A data file of these rows, which no commit mentions yet."""
    file = folder / f"part-{uuid4()}.zstd.parquet"
    pq.write_table(rows, file, compression="zstd")
    stats = json.dumps(statistics(rows))
    size = file.stat().st_size
    return AddAction(
        path=file.name, size=size, partition_values={}, modification_time=now, data_change=True, stats=stats
    )


def statistics(rows: pa.Table) -> dict[str, Any]:
    """What Delta keeps of a file: how many rows, the limits of each column that has an order, and its NULLs."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for field in rows.schema:
        if pa.types.is_string(field.type) or pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type):
            limits = [_told(value) for value in pc.min_max(rows[field.name]).as_py().values()]
            if None not in limits:
                least[field.name], greatest[field.name] = limits
    nulls = {field.name: rows[field.name].null_count for field in rows.schema if not pa.types.is_nested(field.type)}
    return {"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return None if isinstance(value, str) and len(value) > LONGEST else value
