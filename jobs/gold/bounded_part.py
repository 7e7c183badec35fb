"""Limits a part of the analysis to groups whose rows the driver can hold at a time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.gold.gold_inputs import starts_of
from jobs.tables.delta_io import read, required
from jobs.tables.engine import connect, show
from jobs.tables.location import is_elsewhere
from pipelines.gold.groups import Group
from schemas.silver import GENERATIONS
from schemas.thresholds import DAY_MS

PART_ROWS = 100_000
"""Rows of gold that the driver compares at a time, at about 2 kB for the old and the new one."""

EACH = 10
"""Rows of a group besides those of its generations: hours, diagnoses, patterns and advice of a day."""


def fitting(
    spark: SparkSession | None, warehouse: Path, scope: Mapping[Group, int], most_rows: int
) -> dict[Group, int]:
    """Return the first groups of `scope`, at least one, whose gold rows are at most about `most_rows`.

    A group has a verdict for each generation since the day of its change. The session may be None for a folder.
    """
    counts = _generations(spark, warehouse, dict(islice(scope.items(), max(1, most_rows // EACH))))
    found: dict[Group, int] = {}
    total = 0
    for group, at in scope.items():
        total += EACH + counts.get(group, 0)
        if found and total > most_rows:
            break
        found[group] = at
    return found


def _generations(spark: SparkSession | None, warehouse: Path, scope: Mapping[Group, int]) -> dict[Group, int]:
    starts = {group: at // DAY_MS * DAY_MS for group, at in scope.items()}
    found = _by_spark(required(spark), warehouse, starts) if is_elsewhere(warehouse) else _in_folder(warehouse, starts)
    return {(row["cluster"], row["group_id"]): row["count"] for row in found.to_pylist()}


def _by_spark(spark: SparkSession, warehouse: Path, starts: Mapping[Group, int]) -> pa.Table:
    since = F.broadcast(spark.createDataFrame(starts_of(starts)))
    rows = read(spark, warehouse, GENERATIONS).join(since, ["cluster", "group_id"])
    late = rows.where(F.unix_millis("joined_at") >= F.col("since_ms"))
    return late.groupBy("cluster", "group_id").count().toArrow()


def _in_folder(warehouse: Path, starts: Mapping[Group, int]) -> pa.Table:
    with connect() as engine:
        # Files that end before the first change are not opened.
        show(engine, "generations", warehouse, GENERATIONS, ("joined_at", min(starts.values())))
        engine.register("starts", starts_of(starts))
        return engine.sql(
            "SELECT cluster, group_id, count(*) AS count FROM generations JOIN starts USING (cluster, group_id) "
            "WHERE epoch_ms(joined_at) >= since_ms GROUP BY cluster, group_id"
        ).to_arrow_table()
