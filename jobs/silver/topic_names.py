"""Facts about topics from polls: their names by id, which records of KIP-848 and share groups lack, and their numbers
of partitions.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.tables.engine import connect, show
from jobs.tables.table_facts import exists
from pipelines.silver.affected_groups import TOPIC_KIND
from pipelines.silver.frame import PartitionCounts, PolledTopics
from schemas.bronze import ADMIN_OBSERVATIONS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from schemas.tables import Table

Group = tuple[str, str]

POLLED = """
SELECT cluster, json_extract_string(body, '$.topic') AS topic, json_extract_string(body, '$.topic_id') AS topic_id,
       max(json_array_length(body, '$.partitions')) AS partitions
FROM seen WHERE kind = $kind GROUP BY ALL HAVING topic IS NOT NULL
"""
WITH_IDS = """
SELECT DISTINCT cluster, group_id FROM (SELECT cluster, group_id, unnest(assigned) AS resource FROM stored)
WHERE resource.name IN (SELECT unnest($ids))
"""
WITH_SEEN = """
SELECT DISTINCT missing.cluster, group_id
FROM (SELECT cluster, group_id, unnest(missing_partitions) AS resource FROM stored) missing
JOIN seen ON missing.cluster = seen.cluster AND resource.name = seen.name
WHERE resource.index < seen.partitions
"""
SEEN = pa.schema([("cluster", pa.string()), ("name", pa.string()), ("partitions", pa.int32())])


def polled_topics(warehouse: Path) -> PolledTopics:
    """Return by cluster: topic id → name, and topic → the highest number of partitions in any poll.

    Ids are unique and partitions are never removed, so polls contradict each other only for a recreated topic.
    """
    names: dict[str, dict[str, str]] = defaultdict(dict)
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    if exists(warehouse, ADMIN_OBSERVATIONS):
        with connect() as engine:
            show(
                engine,
                "seen",
                warehouse,
                ADMIN_OBSERVATIONS,
                columns=("cluster", "kind", "body"),
                where=f"kind = '{TOPIC_KIND}'",
                is_distinct=True,
            )
            found = engine.execute(POLLED, {"kind": TOPIC_KIND}).fetchall()
        for cluster, topic, topic_id, partitions in found:
            if topic_id:
                names[cluster][topic_id] = topic
            if partitions is not None:
                counts[cluster][topic] = max(partitions, counts[cluster].get(topic, 0))
    return PolledTopics(dict(names), dict(counts))


def with_named(warehouse: Path, affected: pa.Table, polled: Callable[[], PolledTopics]) -> pa.Table:
    """Return `affected` with the groups whose rows a poll of a topic changes, each from its start.

    These groups know a topic only by its id, or own partitions that no poll had seen before. Rows without a group,
    which name the topics, are left out. `polled` returns the result of `polled_topics` for the warehouse.
    """
    groups = affected.filter(pc.is_valid(affected["group_id"])).drop_columns(["topic_ids", "topics"])
    named = affected.filter(pc.is_null(affected["group_id"])).to_pylist()
    ids = sorted({topic_id for row in named for topic_id in row["topic_ids"] or ()})
    topics = {(row["cluster"], topic) for row in named for topic in row["topics"] or ()}
    found = _with_ids(warehouse, ids) if ids else set()
    found |= _with_seen(warehouse, topics, polled().partition_counts) if topics else set()
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


def _with_ids(warehouse: Path, ids: Collection[str]) -> set[Group]:
    """Return the groups with an assigned topic that is stored under one of these ids."""
    return _groups(warehouse, GENERATION_MEMBERS, "assigned", WITH_IDS, ids=list(ids))


def _with_seen(warehouse: Path, topics: Collection[tuple[str, str]], counts: PartitionCounts) -> set[Group]:
    """Return the groups with an assigned partition that no poll had seen before, and that is known now."""
    rows = [(cluster, topic, counts.get(cluster, {}).get(topic, 0)) for cluster, topic in sorted(topics)]
    known = [dict(zip(SEEN.names, row, strict=True)) for row in rows]
    return _groups(warehouse, GENERATIONS, "missing_partitions", WITH_SEEN, pa.Table.from_pylist(known, SEEN))


def _groups(
    warehouse: Path, table: Table, column: str, query: str, seen: pa.Table | None = None, **values: object
) -> set[Group]:
    with connect() as engine:
        columns = ("cluster", "group_id", column)
        show(engine, "stored", warehouse, table, columns=columns, where=f"size({column}) > 0", is_distinct=True)
        if seen is not None:
            engine.register("seen", seen)
        return set(engine.execute(query, values or None).fetchall())
