"""Rows of a Delta table on a machine of one's own changed in one commit, by Arrow and deltalake.

For the few thousand rows that a batch changes, Spark takes a second of a core to plan and run a MERGE; to read the
files that hold them and write these again takes some hundredths. deltalake's own MERGE is not it: it leaves files whose
strings Arrow cannot filter.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from jobs.tables.data_file import DataFile, write
from jobs.tables.engine import connect, files_with_matches, quoted, show_files
from jobs.tables.full_disk import refuse_full
from jobs.tables.silver_rows import datafiles, instant
from jobs.tables.transactions import retry_commit
from schemas.tables import Table


def rewrite(
    path: str,
    table: Table,
    new: pa.Table,
    changed: pa.Table,
    gone: pa.Table,
    since: tuple[str, int] | None,
    files: Sequence[DataFile] = (),
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
        files: data files of further rows whose keys it does not have, but for those of `gone`.

    Raises:
        CommitFailedError: there was another commit meanwhile.
    """
    stored = DeltaTable(path)
    keys = pa.concat_tables([changed.select(table.key), gone.select(table.key)])
    standing = datafiles(path, stored, since)
    held = _holding(standing, table, keys) if standing and keys.num_rows else []
    others = pa.concat_tables([changed, _without(held, table, keys, changed.schema)]) if held else changed
    commit(path, stored, removed=held, added=(new, *_by_age(others, since)), files=files)


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
    files: Sequence[DataFile] = (),
    transactions: list[Transaction] | None = None,
    is_same: bool = False,
) -> None:
    """Take data files out of the table at `path`, as it is `stored`, and add one for each of the tables with rows, and
    `files` that are written already; `is_same` says to streams that the rows are.

    Raises:
        CommitFailedError: there was another commit meanwhile.
        OSError: the disk is full.
    """
    now = round(time.time() * 1000)
    written = [*(write(Path(path), rows) for rows in added if rows.num_rows), *files]
    gone = [RemoveAction(path=Path(file).name, data_change=not is_same, deletion_timestamp=now) for file in removed]
    come = [_added(file, now, is_same=is_same) for file in written]
    refuse_full(Path(path))
    # After any other commit all is looked at again: deltalake itself would let files be removed twice, once by who
    # compacts them, which leaves their rows twice.
    once = CommitProperties(max_commit_retries=0, app_transactions=transactions)
    stored.create_write_transaction([*gone, *come], mode="append", schema=stored.schema(), commit_properties=once)


def exchange(path: str, gone: Sequence[str], come: Sequence[DataFile], *, is_same: bool = False) -> bool:
    """Put data files in the place of others, whoever else commits meanwhile; not where one of these has gone: then
    `come` are removed.

    Raises:
        CommitFailedError: others committed first each time.
        OSError: the disk is full.
    """

    def act() -> bool:
        stored = DeltaTable(path)
        standing = {Path(file).name for file in stored.file_uris()}
        if {file.name for file in come} <= standing:
            # A commit may be there although the attempt failed after it.
            return True
        if not {Path(file).name for file in gone} <= standing:
            return False
        commit(path, stored, removed=gone, added=(), files=come, is_same=is_same)
        return True

    # Where an attempt fails it is not known whether a commit mentions them; if none does, `maintain` removes them.
    is_done = retry_commit(path, act)
    if not is_done:
        for file in come:
            Path(path, file.name).unlink()
    return is_done


def _holding(files: Sequence[str], table: Table, keys: pa.Table) -> list[str]:
    """Those of the files that hold a row with one of the keys."""
    with connect() as engine:
        engine.register("keys", keys)
        return files_with_matches(engine, files, f"SEMI JOIN keys USING ({quoted(table.key)})")


def _without(files: Sequence[str], table: Table, keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows of the files that have none of the keys."""
    with connect() as engine:
        show_files(engine, "found", table, files)
        engine.register("keys", keys)
        rows = engine.sql(f"SELECT * FROM found ANTI JOIN keys USING ({quoted(table.key)})").to_arrow_table()  # noqa: S608 - our own names
    return rows.select(schema.names).cast(schema)


def _added(file: DataFile, now: int, *, is_same: bool) -> AddAction:
    return AddAction(
        path=file.name,
        size=file.size,
        partition_values={},
        modification_time=now,
        data_change=not is_same,
        stats=file.stats,
    )
