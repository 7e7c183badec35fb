"""Replaces rows of a Delta table by rows of a Spark frame, without rows in the driver: for tables elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.tables.replace import CHANGE, DELETE, INSERT, NEW, UPDATE
from jobs.tables.spark_commit import commit_by_spark
from schemas.tables import Table

Sides = tuple[DataFrame, DataFrame]
"""Old rows of a table, and the new rows that replace them."""


def merge_frames(warehouse: Path, table: Table, sides: Callable[[], Sides], where: Sequence[Column] = ()) -> None:
    """Replace old rows of the table by new rows, in one MERGE that writes only rows that differ.

    The frames that `sides` returns have the table's columns. The old rows contain every row with a key of a new row,
    and keys are unique in each. Each of the conditions `where` is true for all old rows; Delta skips files by them. If
    a process is killed, the table has either all changes or none, and repeating the call changes nothing twice.
    """
    # The two sides have different names, because a path is no qualifier for a column.
    values = {name: F.col(f"{NEW}{name}") for name in table.names}
    same = [F.col(name) == values[name] for name in table.key]

    def merge(name: str) -> None:
        (
            # Not WHEN NOT MATCHED BY SOURCE: Delta then reads all files of the table, whatever the condition.
            frame_changes(*sides(), table)
            .mergeInto(name, reduce(and_, [*same, *where]))
            .whenMatched(F.col(CHANGE) == DELETE)
            .delete()
            .whenMatched()
            .update(values)
            .whenNotMatched(F.col(CHANGE) == INSERT)
            .insert(values)
            .merge()
        )

    # Retries are safe: files that `maintain` compacts meanwhile contain the same rows.
    commit_by_spark(warehouse, table, merge)


def frame_changes(old: DataFrame, new: DataFrame, table: Table) -> DataFrame:
    """Return what `replace.Changes.with_kinds` returns, as a frame. The columns of rows begin with `NEW`."""
    before, after = old.select(*table.names).alias("before"), new.select(*table.names).alias("after")
    same_key = reduce(and_, (F.col(f"before.`{name}`") == F.col(f"after.`{name}`") for name in table.key))
    is_new, is_gone = (F.col(f"{side}.`{table.key[0]}`").isNull() for side in ("before", "after"))
    # Structs, in which two nulls are equal. One comparison of each column is too deep an expression for Spark Connect.
    was, will_be = (F.struct(*(F.col(f"{side}.`{name}`") for name in table.names)) for side in ("before", "after"))
    change = F.when(is_new, F.lit(INSERT)).when(is_gone, F.lit(DELETE)).when(was != will_be, F.lit(UPDATE))
    rows = [
        F.when(is_gone, F.col(f"before.`{name}`")).otherwise(F.col(f"after.`{name}`")).alias(f"{NEW}{name}")
        for name in table.names
    ]
    found = before.join(after, same_key, "full_outer").select(*rows, change.alias(CHANGE))
    return found.where(F.col(CHANGE).isNotNull())
