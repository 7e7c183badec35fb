"""Facts about topics from polls: their names by id, which records of KIP-848 and share groups lack, and their numbers
of partitions.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.tables.delta_io import read, table_path
from jobs.tables.engine import connect, show
from pipelines.silver.affected_groups import TOPIC_KIND
from pipelines.silver.frame import PartitionCounts, PolledTopics
from schemas.bronze import ADMIN_OBSERVATIONS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

POLLED = """
SELECT cluster, json_extract_string(body, '$.topic') AS topic, json_extract_string(body, '$.topic_id') AS topic_id,
       max(json_array_length(body, '$.partitions')) AS partitions
FROM seen WHERE kind = $kind GROUP BY ALL HAVING topic IS NOT NULL
"""


def polled_topics(warehouse: Path) -> PolledTopics:
    """Return by cluster: topic id → name, and topic → the highest number of partitions in any poll.

    Ids are unique and partitions are never removed, so polls contradict each other only for a recreated topic.
    """
    names: dict[str, dict[str, str]] = defaultdict(dict)
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    if deltalake.DeltaTable.is_deltatable(table_path(warehouse, ADMIN_OBSERVATIONS)):
        with connect() as engine:
            show(engine, "seen", warehouse, ADMIN_OBSERVATIONS)
            found = engine.execute(POLLED, {"kind": TOPIC_KIND}).fetchall()
        for cluster, topic, topic_id, partitions in found:
            if topic_id:
                names[cluster][topic_id] = topic
            if partitions is not None:
                counts[cluster][topic] = max(partitions, counts[cluster].get(topic, 0))
    return PolledTopics(dict(names), dict(counts))


def with_named(
    spark: SparkSession, warehouse: Path, affected: pa.Table, polled: Callable[[], PolledTopics]
) -> pa.Table:
    """Return `affected` with the groups whose rows a poll of a topic changes, each from its start.

    These groups know a topic only by its id, or own partitions that no poll had seen before. Rows without a group,
    which name the topics, are left out. `polled` returns the result of `polled_topics` for the warehouse.
    """
    groups = affected.filter(pc.is_valid(affected["group_id"])).drop_columns(["topic_ids", "topics"])
    named = affected.filter(pc.is_null(affected["group_id"])).to_pylist()
    ids = sorted({topic_id for row in named for topic_id in row["topic_ids"] or ()})
    topics = {(row["cluster"], topic) for row in named for topic in row["topics"] or ()}
    found = _with_ids(spark, warehouse, ids) if ids else set()
    found |= _with_seen(spark, warehouse, topics, polled().partition_counts) if topics else set()
    if not found:
        return groups
    # From the start, even if the group also has newer rows.
    start = datetime.fromtimestamp(0, UTC)
    rows: list[dict[str, Any]] = [
        {"cluster": cluster, "group_id": group_id, "since_at": start, "last_commit_at": None, "committed": []}
        for cluster, group_id in sorted(found)
    ]
    rows += [row for row in groups.to_pylist() if (row["cluster"], row["group_id"]) not in found]
    return pa.Table.from_pylist(rows, schema=groups.schema)


def _with_ids(spark: SparkSession, warehouse: Path, ids: Collection[str]) -> set[tuple[str, str]]:
    """Return the groups with an assigned topic that is stored under one of these ids."""
    owned = read(spark, warehouse, GENERATION_MEMBERS).select(
        "cluster", "group_id", F.explode("assigned").alias("resource")
    )
    return _groups(owned.where(F.col("resource.name").isin(list(ids))))


def _with_seen(
    spark: SparkSession, warehouse: Path, topics: Collection[tuple[str, str]], counts: PartitionCounts
) -> set[tuple[str, str]]:
    """Return the groups with an assigned partition that no poll had seen before, and that is known now."""
    rows = [(cluster, topic, counts.get(cluster, {}).get(topic, 0)) for cluster, topic in sorted(topics)]
    known = spark.createDataFrame(rows, "cluster STRING, name STRING, partitions INT")
    missing = read(spark, warehouse, GENERATIONS).where(F.col("missing_partitions").isNotNull())
    given = missing.select("cluster", "group_id", F.inline("missing_partitions"))
    return _groups(given.join(F.broadcast(known), ["cluster", "name"]).where(F.col("index") < F.col("partitions")))


def _groups(found: DataFrame) -> set[tuple[str, str]]:
    return {(row["cluster"], row["group_id"]) for row in found.select("cluster", "group_id").distinct().collect()}
