"""Silver rows replaced where they differ: the one way in which a Delta table of ours ever changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from delta.tables import DeltaTable
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.conflicts import insist, turn
from schemas.tables import Table

CHANGE = "_change"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
PRUNED_GROUPS = 500
"""Up to so many groups, or topics, are named in a condition, which lets Delta skip the files of all others."""


def replace_rows(spark: SparkSession, old: pa.Table, new: pa.Table, path: str, table: Table) -> int:
    """Turn `old`, which are rows of the table at `path`, into `new`, in one commit; returns how many rows changed.

    Both have the table's columns; `new` is unique by its key. Nothing is written where nothing differs.
    """
    changes = differences(old, new, table)
    if not changes.num_rows:
        return 0
    if pc.all(pc.equal(changes.column(CHANGE), INSERT)).as_py():
        # Most batches only add rows, and an append costs a fraction of a MERGE.
        rows = spark.createDataFrame(changes.drop_columns(CHANGE)).coalesce(1)
        with turn(path):
            rows.write.format("delta").mode("append").save(path)
        return int(changes.num_rows)
    owner = list(table.key[:2])
    owners = changes.select(owner).group_by(owner).aggregate([]).to_pylist()
    same = [F.col(f"old.{name}") == F.col(f"new.{name}") for name in table.key]
    values: dict[str, str | Column] = {name: F.col(f"new.{name}") for name in table.names}

    def merge() -> None:
        (
            DeltaTable.forPath(spark, path)
            .alias("old")
            .merge(spark.createDataFrame(changes).alias("new"), reduce(and_, same + _pruned(owners, owner)))
            .whenMatchedDelete(F.col(f"new.{CHANGE}") == DELETE)
            .whenMatchedUpdate(set=values)
            .whenNotMatchedInsert(F.col(f"new.{CHANGE}") == INSERT, values)
            .execute()
        )

    # Files that `maintain` compacts meanwhile hold the same rows.
    insist(path, merge)
    return int(changes.num_rows)


def differences(old: pa.Table, new: pa.Table, table: Table) -> pa.Table:
    """Rows of `new` that `old` does not hold just so, and rows of `old` whose key is gone; `_change` says which."""
    names = list(table.names)
    key = ", ".join(f'"{name}"' for name in table.key)
    with duckdb.connect() as engine:
        engine.register("old_rows", old.select(names))
        engine.register("new_rows", new.select(names))
        found = engine.sql(
            f"WITH changed AS (SELECT * FROM new_rows EXCEPT SELECT * FROM old_rows) "  # noqa: S608 - our own names
            f"SELECT *, CASE WHEN ({key}) IN (SELECT ({key}) FROM old_rows) THEN '{UPDATE}' ELSE '{INSERT}' END "
            f"AS {CHANGE} FROM changed "
            f"UNION ALL SELECT *, '{DELETE}' FROM old_rows WHERE ({key}) NOT IN (SELECT ({key}) FROM new_rows)"
        ).to_arrow_table()
    return found.cast(new.select(names).schema.append(pa.field(CHANGE, pa.string())))


def _pruned(owners: Sequence[dict[str, str]], names: Sequence[str]) -> list[Column]:
    if len(owners) > PRUNED_GROUPS:
        return []
    return [F.col(f"old.{name}").isin(sorted({owner[name] for owner in owners})) for name in names]
