"""Changes rows of a Delta table in one commit in local mode, with Arrow and deltalake.

Spark takes a second of a core to plan and run a MERGE for the few thousand rows that a batch changes. Reading the files
that contain them and writing these files again takes some hundredths. deltalake's own MERGE is not used, because it
writes files whose strings Arrow cannot filter.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from jobs.config.errors import UserError
from jobs.tables.as_of import newest_of
from jobs.tables.disk.data_file import DataFile, write
from jobs.tables.disk.full_disk import refuse_full
from jobs.tables.disk.table_log import CHECKPOINT_COMMITS
from jobs.tables.engine import connect, files_with_matches, quoted, show_files
from jobs.tables.silver_rows import datafiles, timestamp_scalar
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
    """Add `new`, replace the rows that have the keys of `changed`, and delete the rows that have the keys of `gone`.

    Args:
        path: the table's path.
        table: its definition.
        new: rows with new keys. They get a separate file, because they will change next.
        changed: rows with existing keys.
        gone: rows with existing keys.
        since: a timestamp (column and ms). All replaced rows are from then or later. Older rows in the same files get a
            separate file.
        files: data files of more rows. Their keys are new or in `gone`.

    Raises:
        CommitFailedError: another commit came first.
    """
    stored = newest_of(path)
    keys = pa.concat_tables([changed.select(table.key), gone.select(table.key)])
    current = datafiles(path, stored, since)
    affected = _holding(current, table, keys) if current and keys.num_rows else []
    others = pa.concat_tables([changed, _without(affected, table, keys, changed.schema)]) if affected else changed
    commit(path, stored, removed=affected, added=(new, *_by_age(others, since)), files=files)


def _by_age(rows: pa.Table, since: tuple[str, int] | None) -> tuple[pa.Table, ...]:
    """Separate rows from before `since`. They rarely change again, so later changes need not rewrite them."""
    if since is None:
        return (rows,)
    is_old = pc.fill_null(pc.less(rows[since[0]], timestamp_scalar(since[1])), fill_value=False)
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
    """Remove data files from the table at `path`, and add one file per table in `added` that has rows, and `files`.

    `stored` is the table in the version that this commit must follow. `files` are already written. `is_same` tells
    streams that the rows did not change.

    Raises:
        CommitFailedError: another commit came first.
        OSError: the disk is full.
        UserError: one of `files` is missing.
    """
    now = round(time.time() * 1000)
    for file in files:
        _keep(Path(path, file.name))
    written = [*(write(Path(path), rows) for rows in added if rows.num_rows), *files]
    gone = [RemoveAction(path=Path(file).name, data_change=not is_same, deletion_timestamp=now) for file in removed]
    come = [_added(file, now, is_same=is_same) for file in written]
    refuse_full(Path(path))
    # No retries inside deltalake: after another commit everything must be read again. deltalake would let two commits
    # remove the same file, for example one that compacts it, and its rows would then exist twice.
    once = CommitProperties(max_commit_retries=0, app_transactions=transactions)
    stored.create_write_transaction(
        [*gone, *come],
        mode="append",
        schema=stored.schema(),
        commit_properties=once,
        post_commithook_properties=_after_commit(stored.version() + 1),
    )


def _after_commit(version: int) -> PostCommitHookProperties:
    """Return what follows the commit with this version.

    deltalake would look for expired files of the log after each commit, which takes longer than the commit itself if
    the log has two hours. So it does so only after commits with a checkpoint: versions 9, 19 and so on.
    """
    has_checkpoint = (version + 1) % CHECKPOINT_COMMITS == 0
    return PostCommitHookProperties(cleanup_expired_logs=None if has_checkpoint else False)


def exchange(path: str, gone: Sequence[str], come: Sequence[DataFile], *, is_same: bool = False) -> bool:
    """Replace data files by others, whatever else is committed meanwhile; return whether that was possible.

    If one of the old files is already gone, the new files are deleted.

    Raises:
        CommitFailedError: other commits came first each time.
        OSError: the disk is full.
    """

    def act() -> bool:
        stored = DeltaTable(path)
        current = {Path(file).name for file in stored.file_uris()}
        if {file.name for file in come} <= current:
            # An attempt can fail although its commit exists.
            return True
        if not {Path(file).name for file in gone} <= current:
            return False
        commit(path, stored, removed=gone, added=(), files=come, is_same=is_same)
        return True

    # After a failed attempt it is unknown whether a commit refers to the files. If none does, `maintain` removes them.
    is_done = retry_commit(path, act)
    if not is_done:
        for file in come:
            Path(path, file.name).unlink()
    return is_done


def _holding(files: Sequence[str], table: Table, keys: pa.Table) -> list[str]:
    """Return the files that contain a row with one of the keys."""
    with connect() as engine:
        engine.register("keys", keys)
        return files_with_matches(engine, files, f"SEMI JOIN keys USING ({quoted(table.key)})")


def _without(files: Sequence[str], table: Table, keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows of the files that have none of the keys."""
    with connect() as engine:
        show_files(engine, "found", table, files)
        engine.register("keys", keys)
        rows = engine.sql(f"SELECT * FROM found ANTI JOIN keys USING ({quoted(table.key)})").to_arrow_table()  # noqa: S608 - our own names
    return rows.select(schema.names).cast(schema)


def _keep(file: Path) -> None:
    """Make a data file as young as its commit, because `maintain` removes old files that no commit mentions.

    Raises:
        UserError: it has removed this one.
    """
    try:
        os.utime(file)
    except FileNotFoundError:
        raise UserError(
            f"{file} was removed before it was committed, because it was older than the files that `maintain` keeps: "
            "run the job again."
        ) from None


def _added(file: DataFile, now: int, *, is_same: bool) -> AddAction:
    return AddAction(
        path=file.name,
        size=file.size,
        partition_values={},
        modification_time=now,
        data_change=not is_same,
        stats=file.stats,
    )
