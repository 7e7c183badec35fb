"""Silver rows replaced where they differ: the one way in which a Delta table of ours ever changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from schemas.tables import Table

DELETE, HASH = "_delete", "_hash"
PRUNED_GROUPS = 500
"""Up to so many changed groups are named in the MERGE, which lets Delta skip the files of all others."""


def replace_rows(old: DataFrame, new: DataFrame, path: str, table: Table) -> int:
    """Turn `old`, which are rows of the table at `path`, into `new`, in one commit; returns how many rows changed.

    Both have the table's columns; `new` is unique by its key. Nothing is written where nothing differs.
    """
    key = list(table.key)
    # A hash of the whole row keeps the comparison one column wide; 64 bits tell the rows of one key apart.
    new = new.select(*table.names, F.xxhash64(*table.names).alias(HASH))
    old_hashes = old.select(*key, F.xxhash64(*table.names).alias(HASH))
    changed = new.join(old_hashes, [*key, HASH], "left_anti").drop(HASH)
    gone = old.select(*table.names).join(new.select(*key), key, "left_anti")
    changes = (
        changed.withColumn(DELETE, F.lit(False))  # noqa: FBT003 - a literal, not a flag
        .unionByName(gone.withColumn(DELETE, F.lit(True)))  # noqa: FBT003
        .persist()
    )
    try:
        count = changes.groupBy("cluster", "group_id").count().collect()
        if not count:
            return 0
        groups = [(row["cluster"], row["group_id"]) for row in count]
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
        return sum(row["count"] for row in count)
    finally:
        changes.unpersist()


def _pruned(groups: Sequence[tuple[str, str]]) -> list[Column]:
    if len(groups) > PRUNED_GROUPS:
        return []
    return [
        F.col("old.cluster").isin(sorted({cluster for cluster, _ in groups})),
        F.col("old.group_id").isin(sorted({group for _, group in groups})),
    ]
