"""Names of topics by their ids, as polls saw them: records of KIP-848 and share groups name topics by id alone."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.delta_io import read, table_path
from jobs.engine import connect, show
from pipelines.silver.touched import TOPIC_KIND
from schemas.bronze import ADMIN_OBSERVATIONS
from schemas.silver import GENERATION_MEMBERS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pipelines.silver.frame import TopicNames


def topic_names(warehouse: Path) -> TopicNames:
    """By cluster: topic id → name. An id is never given twice, so no later poll contradicts an earlier one."""
    path = table_path(warehouse, ADMIN_OBSERVATIONS)
    if not deltalake.DeltaTable.is_deltatable(path):
        return {}
    with connect() as engine:
        show(engine, "seen", warehouse, ADMIN_OBSERVATIONS)
        found = engine.execute("SELECT DISTINCT cluster, body FROM seen WHERE kind = $1", [TOPIC_KIND]).fetchall()
    out: dict[str, dict[str, str]] = defaultdict(dict)
    for cluster, told in found:
        body = json.loads(told)
        if body.get("topic_id"):
            out[cluster][body["topic_id"]] = body["topic"]
    return dict(out)


def with_named(spark: SparkSession, warehouse: Path, touched: pa.Table) -> pa.Table:
    """`build.touched` with the groups that know by its id a topic which has a name now, each from its start.

    Rows without a group name the topics, and are gone.
    """
    groups = touched.filter(pc.is_valid(touched["group_id"])).drop_columns("topic_ids")
    topics = touched.filter(pc.is_null(touched["group_id"])).to_pylist()
    ids = sorted({topic_id for row in topics for topic_id in row["topic_ids"] or ()})
    if not ids:
        return groups
    owned = read(spark, warehouse, GENERATION_MEMBERS).select(
        "cluster", "group_id", F.explode("assigned").alias("resource")
    )
    found = owned.where(F.col("resource.name").isin(ids)).select("cluster", "group_id").distinct().toArrow()
    # Its history from the start, whatever else is new of it.
    start = datetime.fromtimestamp(0, UTC)
    rows = [row | {"since_at": start, "last_commit_at": None, "committed": []} for row in found.to_pylist()]
    known = {(row["cluster"], row["group_id"]) for row in rows}
    rows += [row for row in groups.to_pylist() if (row["cluster"], row["group_id"]) not in known]
    return pa.Table.from_pylist(rows, schema=groups.schema)
