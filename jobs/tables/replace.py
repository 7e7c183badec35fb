"""Replaces silver rows that differ. Rows of a Delta table are only changed here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.tables.append import append_frame, overwrite_frame
from jobs.tables.delta_io import required
from jobs.tables.disk.data_file import DataFile
from jobs.tables.engine import connect, quoted
from jobs.tables.local_rewrite import rewrite
from jobs.tables.paths import table_path
from jobs.tables.silver_rows import newest
from jobs.tables.spark_commit import commit_by_spark
from jobs.tables.transactions import is_local, retry_commit
from schemas.tables import Table

CHANGE = "_change"
NEW = "_new_"
"""Prefix of the columns of new rows in a MERGE."""
INSERT, UPDATE, DELETE = "insert", "update", "delete"
PRUNED_GROUPS = 500
"""Highest number of groups, or topics, to name in a condition. It lets Delta skip files of other groups."""


def replace_rows(spark: SparkSession | None, warehouse: Path, table: Table, old: pa.Table, new: pa.Table) -> int:
    """Replace `old`, which are rows of the table, by `new`; return the number of changed rows.

    Both have the table's columns. `old` contains every row with a key of `new`, and keys are unique in `new`. If
    nothing differs, nothing is written. In local mode no session is needed. Spark commits new rows before changed rows;
    a process that is killed in between repeats the work.
    """
    changes, path = differences(old, new, table), table_path(warehouse, table)
    if not changes.num_rows:
        return 0
    if is_local(path):
        added, changed, gone = (
            changes.filter(pc.equal(changes[CHANGE], kind)).drop_columns(CHANGE) for kind in (INSERT, UPDATE, DELETE)
        )
        since = _since(old, changes, table)
        # Retries are safe: files that `maintain` compacts meanwhile contain the same rows.
        retry_commit(path, lambda: rewrite(path, table, new=added, changed=changed, gone=gone, since=since))
        return int(changes.num_rows)
    spark = required(spark)
    is_new = pc.equal(changes.column(CHANGE), INSERT)
    if table.time is None and not pc.all(is_new).as_py():
        overwrite_frame(lambda: _whole(spark, changes, path, table), warehouse, table)
        return int(changes.num_rows)
    # New rows get their own files. In the MERGE they would share files with finished rows, and each later MERGE, which
    # rewrites the files of changed rows, would rewrite the whole history.
    if (new := changes.filter(is_new).drop_columns(CHANGE)).num_rows:
        append_frame(spark.createDataFrame(new).coalesce(1), warehouse, table)
    if (others := changes.filter(pc.invert(is_new))).num_rows:
        _merge(spark, warehouse, table, old, others)
    return int(changes.num_rows)


def replace_whole(warehouse: Path, table: Table, old: pa.Table, new: pa.Table, files: Sequence[DataFile]) -> None:
    """Replace `old`, which are rows of the table, by `new` and `files` in one commit, in local mode.

    No commit refers to `files` yet. Unchanged rows are written again.
    """
    none, since, path = new.slice(0, 0), _since(old, old, table), table_path(warehouse, table)
    retry_commit(path, lambda: rewrite(path, table, new=new, changed=none, gone=old, since=since, files=files))


def _merge(spark: SparkSession, warehouse: Path, table: Table, old: pa.Table, changes: pa.Table) -> None:
    """Update and delete rows with Spark's MERGE."""
    owner = list(table.key[:2])
    owners = changes.select(owner).group_by(owner).aggregate([]).to_pylist()
    # The two sides have different names, because a path is no qualifier for a column.
    renamed = changes.rename_columns([f"{NEW}{name}" for name in changes.column_names])
    values = {name: F.col(f"{NEW}{name}") for name in table.names}
    same = [F.col(name) == values[name] for name in table.key]
    pruned = _pruned(owners, owner)
    if (since := _since(old, changes, table)) is not None:
        pruned.append(F.col(since[0]) >= F.timestamp_millis(F.lit(since[1])))

    def merge(name: str) -> None:
        (
            spark.createDataFrame(renamed)
            .mergeInto(name, reduce(and_, same + pruned))
            .whenMatched(F.col(f"{NEW}{CHANGE}") == DELETE)
            .delete()
            .whenMatched()
            .update(values)
            .merge()
        )

    # Retries are safe: files that `maintain` compacts meanwhile contain the same rows.
    commit_by_spark(warehouse, table, merge)


def _whole(spark: SparkSession, changes: pa.Table, path: str, table: Table) -> DataFrame:
    """Return all rows of a table of one row per group or topic. Nearly all its files change, and MERGE would read them
    twice.
    """
    before = newest(path, table).to_table()
    key, names = quoted(table.key), quoted(table.names)
    with connect() as engine:
        engine.register("stored", before)
        engine.register("changes", changes)
        rows = engine.sql(
            f"SELECT {names} FROM stored WHERE ({key}) NOT IN (SELECT ({key}) FROM changes) UNION ALL "  # noqa: S608 - our own names
            f"SELECT {names} FROM changes WHERE {CHANGE} <> '{DELETE}'"
        ).to_arrow_table()
    return spark.createDataFrame(rows.cast(changes.drop_columns(CHANGE).schema)).coalesce(1)


def differences(old: pa.Table, new: pa.Table, table: Table) -> pa.Table:
    """Return new or changed rows, and deleted rows of `old`. The column `_change` has the kind of change."""
    names = list(table.names)
    key = quoted(table.key)
    with connect() as engine:
        engine.register("old_rows", old.select(names))
        engine.register("new_rows", new.select(names))
        found = engine.sql(
            f"WITH changed AS (SELECT * FROM new_rows EXCEPT SELECT * FROM old_rows) "  # noqa: S608 - our own names
            f"SELECT *, CASE WHEN ({key}) IN (SELECT ({key}) FROM old_rows) THEN '{UPDATE}' ELSE '{INSERT}' END "
            f"AS {CHANGE} FROM changed "
            f"UNION ALL SELECT *, '{DELETE}' FROM old_rows WHERE ({key}) NOT IN (SELECT ({key}) FROM new_rows)"
        ).to_arrow_table()
    return found.cast(new.select(names).schema.append(pa.field(CHANGE, pa.string())))


def _since(old: pa.Table, changes: pa.Table, table: Table) -> tuple[str, int] | None:
    """Return the earliest timestamp (column and ms) of the replaced rows. Files that end before it are not opened."""
    if table.time is None:
        return None
    key = quoted(table.key)
    with connect() as engine:
        engine.register("old_rows", old.select({*table.key, table.time}))
        engine.register("changes", changes.select(table.key))
        found = engine.sql(
            f'SELECT epoch_ms(min("{table.time}")), count(*) - count("{table.time}") '  # noqa: S608 - our own names
            f"FROM old_rows SEMI JOIN changes USING ({key})"
        ).fetchall()
    earliest, unknown = found[0]
    return None if earliest is None or unknown else (table.time, earliest)


def _pruned(owners: Sequence[dict[str, str]], names: Sequence[str]) -> list[Column]:
    if len(owners) > PRUNED_GROUPS:
        return []
    return [F.col(name).isin(sorted({owner[name] for owner in owners})) for name in names]
