"""Rows from which alerts are derived, and a function that writes them to tables. Timestamps are in milliseconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from deltalake import write_deltalake

from jobs.tables.paths import table_path
from pipelines.arrow_types import TYPES
from schemas.bronze import COVERAGE
from schemas.gold import CLUSTER_PATTERNS, GROUP_HEALTH, PATTERNS, STORMS
from schemas.silver import GENERATIONS, GROUP_EVENTS, GROUPS, REASSIGNMENTS, STALLS
from schemas.tables import Table

CLUSTER = "kafka"
NOW = 1_794_999_990_000
MINUTE, HOUR = 60_000, 3_600_000


def now() -> int:
    return time.time_ns() // 1_000_000


def row(table: Table, **values: Any) -> dict[str, Any]:
    """Return a row with None in every column that is not given."""
    assert values.keys() <= set(table.names), values.keys() - set(table.names)
    return dict.fromkeys(table.names) | {"cluster": CLUSTER} | values


def storm(group: str = "orders", at: int = NOW - MINUTE, **values: Any) -> dict[str, Any]:
    fields = {
        "storm_id": f"{group}-{at}",
        "scope": "group",
        "started_at": at,
        "detected_at": at,
        "is_open": True,
        "groups": 1,
        "group_ids": [group],
        "rebalances": 12,
        "unexplained_rebalances": 9,
        "lost_resource_seconds_min": 58.2,
        "lost_resource_seconds": 61.0,
        "lost_resource_seconds_max": 66.1,
        "suspected_cause": "session_expiry",
        "score": 0.8,
        "differences": [],
        "evidence": "bounded",
        "explanation": "It was calm before.",
    }
    return row(STORMS, **fields | values)


def pattern(
    name: str, subject: str, groups: list[str], since: int = NOW - 20 * MINUTE, **values: Any
) -> dict[str, Any]:
    """A pattern of the cluster that lasts."""
    fields = {
        "started_at": since, "last_at": NOW, "times": 1, "groups": len(groups), "group_ids": groups, "instances": [],
        "sources": ["log"], "evidence": "observed", "explanation": "It was down.", "action": "Bring it back.",
    }  # fmt: skip
    return row(CLUSTER_PATTERNS, pattern=name, subject=subject, **fields | values)


def rebalancing(group: str = "orders", since: int = NOW - 20 * MINUTE, **values: Any) -> dict[str, Any]:
    fields = {"state": "PreparingRebalance", "generation_id": 7, "member_count": 3, "is_deleted": False}
    given = fields | {"last_record_at": NOW, "evidence": "observed", "open_rebalance_since_at": since} | values
    return row(GROUPS, group_id=group, **given)


def coverage(upto: int = 100, at: int = NOW, partition: int = 0, **values: Any) -> dict[str, Any]:
    fields = {"source": "__consumer_offsets", "log_epoch": 0, "from_offset": 0, "is_gap": False, "from_at": at}
    return row(COVERAGE, source_partition=partition, to_offset=upto, to_at=at, **fields | values)


def unowned(topic: str = "audit", group: str = "orders", since: int = NOW - 20 * MINUTE, **values: Any) -> Any:
    """A topic without an owner, as the group's newest analysis shows it."""
    fields = {"pattern": "topic_without_owner", "as_of": since, "last_at": since, "times": 1, "evidence": "observed"}
    texts = {"explanation": f"Nobody was assigned {topic}.", "action": f"Check that {topic} exists."}
    given = fields | texts | {"instances": ["a"], "sources": ["topic"]} | values
    return row(PATTERNS, group_id=group, subject=topic, started_at=since, **given)


def stall(ended: int, lost_ms: int, group: str = "orders", index: int = 0, **values: Any) -> dict[str, Any]:
    fields = {
        "incarnation": 0,
        "stopped_by_offset": ended,
        "name": "topic",
        "cause": "eager_barrier",
        "evidence": "bounded",
    }
    times = {"stopped_at_latest": ended - lost_ms, "resumed_at_earliest": ended, "resumed_at_latest": ended}
    widths = dict.fromkeys(("stopped_ms", "stopped_ms_min", "stopped_ms_max"), lost_ms)
    return row(STALLS, group_id=group, index=index, **fields | times | widths | values)


def generation(number: int, at: int, resources: int | None, group: str = "orders", **values: Any) -> dict[str, Any]:
    fields = {"incarnation": 0, "joined_at": at, "synced_at": at, "is_empty": False}
    return row(GENERATIONS, group_id=group, generation_id=number, resources_assigned=resources, **fields | values)


def health(hour: int, flapping: int = 0, group: str = "orders", **values: Any) -> dict[str, Any]:
    return row(GROUP_HEALTH, group_id=group, hour_at=hour, flapping_members=flapping, **values)


def departure(at: int, client: str, group: str = "orders", **values: Any) -> dict[str, Any]:
    fields = {"kind": "left", "member_id": f"{client}-{at}", "client_id": client, "evidence": "observed"}
    return row(GROUP_EVENTS, group_id=group, event_at=at, **fields | values)


def stalled(topic: str = "topic", partition: int = 0, **values: Any) -> dict[str, Any]:
    fields = {"started_at": NOW - HOUR, "stalled_since_at": NOW - 10 * MINUTE, "state": "stalled", "adding": [3]}
    return row(
        REASSIGNMENTS, topic=topic, partition=partition, **fields | {"progress": 0.4, "evidence": "bounded"} | values
    )


def write(
    warehouse: Path, table: Table, rows: list[dict[str, Any]], mode: Literal["append", "overwrite"] = "overwrite"
) -> None:
    """Replace the table's rows by these, or add them; without Spark, because only the reader under test reads the
    table.
    """
    types = [(c.name, TYPES[c.type]) for c in table.columns]
    timestamps = {name for name, kind in types if pa.types.is_timestamp(kind)}
    fields = [{k: v * 1000 if k in timestamps and v is not None else v for k, v in r.items()} for r in rows]
    write_deltalake(table_path(warehouse, table), pa.Table.from_pylist(fields, schema=pa.schema(types)), mode=mode)
