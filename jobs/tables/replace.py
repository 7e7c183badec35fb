"""Replaces silver rows that differ. Rows of a Delta table are only changed here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
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
from jobs.tables.silver_rows import milliseconds_of, newest
from jobs.tables.spark_commit import commit_by_spark
from jobs.tables.transactions import is_local, retry_commit
from schemas.tables import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHANGE = "_change"
NEW = "_new_"
"""Prefix of the columns of new rows in a MERGE."""
INSERT, UPDATE, DELETE = "insert", "update", "delete"
PRUNED_GROUPS = 500
"""Highest number of groups, or topics, to name in a condition. It lets Delta skip files of other groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Rows of a table with its columns: `added` have new keys, `changed` replace `before`, `gone` are deleted.

    `before` has the row of each row in `changed`, in the same order.
    """

    added: pa.Table
    changed: pa.Table
    before: pa.Table
    gone: pa.Table

    @property
    def count(self) -> int:
        """The number of rows that are added, changed or deleted."""
        return int(self.added.num_rows + self.changed.num_rows + self.gone.num_rows)

    def since(self, table: Table) -> tuple[str, int] | None:
        """Return what `_since` returns for the rows that are replaced."""
        return _since(pa.concat_tables([self.before, self.gone]), table)

    def with_kinds(self) -> pa.Table:
        """Return all rows, with the kind of change in the column `_change`."""
        kinds = {INSERT: self.added, UPDATE: self.changed, DELETE: self.gone}.items()
        return pa.concat_tables(rows.append_column(CHANGE, pa.repeat(kind, rows.num_rows)) for kind, rows in kinds)


def replace_rows(spark: SparkSession | None, warehouse: Path, table: Table, old: pa.Table, new: pa.Table) -> int:
    """Replace `old`, which are rows of the table, by `new`; return the number of changed rows.

    Both have the table's columns. `old` contains every row with a key of `new`, and keys are unique in `new`. If
    nothing differs, nothing is written. In local mode no session is needed, and there is one commit. Spark commits new
    rows before changed rows; a process that is killed in between repeats the work.
    """
    found, path = changes(old, new, table), table_path(warehouse, table)
    if not found.count:
        return 0
    if is_local(path):
        since = found.since(table)
        # Retries are safe: files that `maintain` compacts meanwhile contain the same rows.
        retry_commit(
            path, lambda: rewrite(path, table, new=found.added, changed=found.changed, gone=found.gone, since=since)
        )
        return found.count
    spark = required(spark)
    if table.time is None and found.count > found.added.num_rows:
        overwrite_frame(lambda: _whole(spark, found.with_kinds(), path, table), warehouse, table)
        return found.count
    # New rows get their own files. In the MERGE they would share files with finished rows, and each later MERGE, which
    # rewrites the files of changed rows, would rewrite the whole history.
    if found.added.num_rows:
        append_frame(spark.createDataFrame(found.added).coalesce(1), warehouse, table)
    if found.count > found.added.num_rows:
        _merge(spark, warehouse, table, dataclasses.replace(found, added=found.added.slice(0, 0)))
    return found.count


def replace_whole(warehouse: Path, table: Table, old: pa.Table, new: pa.Table, files: Sequence[DataFile]) -> None:
    """Replace `old`, which are rows of the table, by `new` and `files` in one commit, in local mode.

    No commit refers to `files` yet. Unchanged rows are written again.
    """
    none, since, path = new.slice(0, 0), _since(old, table), table_path(warehouse, table)
    retry_commit(path, lambda: rewrite(path, table, new=new, changed=none, gone=old, since=since, files=files))


def _merge(spark: SparkSession, warehouse: Path, table: Table, found: Changes) -> None:
    """Update and delete rows with Spark's MERGE."""
    rows = found.with_kinds()
    owner = list(table.key[:2])
    owners = rows.select(owner).group_by(owner).aggregate([]).to_pylist()
    # The two sides have different names, because a path is no qualifier for a column.
    renamed = rows.rename_columns([f"{NEW}{name}" for name in rows.column_names])
    values = {name: F.col(f"{NEW}{name}") for name in table.names}
    same = [F.col(name) == values[name] for name in table.key]
    pruned = _pruned(owners, owner)
    if (since := found.since(table)) is not None:
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


def changes(old: pa.Table, new: pa.Table, table: Table) -> Changes:
    """Return how `new` differs from `old`. Keys are unique in each.

    Compared as columns, because DuckDB plans a comparison of some fifty columns for 10 ms, even of no rows.
    """
    new = new.select(table.names)
    old = old.select(table.names).cast(new.schema)
    places = {key: place for place, key in enumerate(_keys(old, table))}
    of_new = pa.array([places.pop(key, None) for key in _keys(new, table)], pa.int64())
    again, before = new.filter(of_new.is_valid()), old.take(of_new.drop_null())
    is_changed = pa.array(_differing(before, again))
    return Changes(
        added=new.filter(of_new.is_null()),
        changed=again.filter(is_changed),
        before=before.filter(is_changed),
        gone=old.take(pa.array(places.values(), pa.int64())),
    )


def _keys(rows: pa.Table, table: Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].to_pylist() for name in table.key), strict=True)


def _differing(before: pa.Table, after: pa.Table) -> NDArray[np.bool_]:
    """Return for each row whether a value differs. The rows of both have the same keys."""
    found = np.zeros(after.num_rows, bool)
    for old, new in zip(before.itercolumns(), after.itercolumns(), strict=True):
        if old.equals(new):
            continue
        if pa.types.is_nested(new.type):
            found |= [one != other for one, other in zip(old.to_pylist(), new.to_pylist(), strict=True)]
        else:
            is_other = pc.fill_null(pc.not_equal(old, new), fill_value=False)
            found |= pc.or_(is_other, pc.xor(old.is_null(), new.is_null())).to_numpy()
    return found


def _since(rows: pa.Table, table: Table) -> tuple[str, int] | None:
    """Return the earliest timestamp (column and ms) of rows that are replaced. Files that end before it are not opened.

    None if a row has no timestamp, or if there are no rows.
    """
    if table.time is None or not rows.num_rows or rows[table.time].null_count:
        return None
    return table.time, milliseconds_of(pc.min(rows[table.time]))


def _pruned(owners: Sequence[dict[str, str]], names: Sequence[str]) -> list[Column]:
    if len(owners) > PRUNED_GROUPS:
        return []
    return [F.col(name).isin(sorted({owner[name] for owner in owners})) for name in names]
