"""Silver rows replaced where they differ: the one way in which a Delta table of ours ever changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from schemas.tables import Table

DELETE = "_delete"
PRUNED_GROUPS = 500
"""Up to so many changed groups are named in the MERGE, which lets Delta skip the files of all others."""


def replace_rows(old: DataFrame, new: DataFrame, path: str, table: Table) -> int:
    """Turn `old`, which are rows of the table at `path`, into `new`, in one commit; returns how many rows changed.

    Both have the table's columns; `new` is unique by its key. Nothing is written where nothing differs.
    """
    old, new = old.select(*table.names), new.select(*table.names)
    changed = _minus(new, old, table.names).withColumn(DELETE, F.lit(False))  # noqa: FBT003 - a literal, not a flag
    gone = _minus(old, new, table.key).withColumn(DELETE, F.lit(True))  # noqa: FBT003
    changes = changed.unionByName(gone).persist()
    try:
        groups = [(r.cluster, r.group_id) for r in changes.select("cluster", "group_id").distinct().collect()]
        if not groups:
            return 0
        same = [F.col(f"old.{name}") == F.col(f"new.{name}") for name in table.key]
        values = {name: F.col(f"new.{name}") for name in table.names}
        (
            DeltaTable.forPath(changes.sparkSession, path)
            .alias("old")
            .merge(changes.alias("new"), reduce(and_, same + _pruned(groups)))
            .whenMatchedDelete(F.col(f"new.{DELETE}"))
            .whenMatchedUpdate(set=dict(values))
            .whenNotMatchedInsert(~F.col(f"new.{DELETE}"), dict(values))
            .execute()
        )
        return changes.count()
    finally:
        changes.unpersist()


def _minus(left: DataFrame, right: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows of `left` that `right` has none equal to in `names`, NULL being equal to NULL."""
    theirs = right.select(*(F.col(name).alias(f"_{name}") for name in names))
    equal = reduce(and_, (F.col(name).eqNullSafe(F.col(f"_{name}")) for name in names))
    return left.join(theirs, equal, "left_anti")


def _pruned(groups: Sequence[tuple[str, str]]) -> list[Column]:
    if len(groups) > PRUNED_GROUPS:
        return []
    return [
        F.col("old.cluster").isin(sorted({cluster for cluster, _ in groups})),
        F.col("old.group_id").isin(sorted({group for _, group in groups})),
    ]
