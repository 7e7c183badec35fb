"""Clusters in which something goes wrong, as the tables hold them. Times are milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs.gold.cluster_patterns import scan_clusters
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COORDINATOR_RECORDS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS
from testing.alerts.rows import CLUSTER, MINUTE, NOW, row, write

SECOND = 1_000
DOWN = 7
"""The offsets partition in trouble."""


class ClusterRows:
    """Rows of one cluster, written as tables of a warehouse."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse
        self.rows: dict[Any, list[dict[str, Any]]] = {}

    def add(self, table: Any, **values: Any) -> None:
        given = {"cluster": CLUSTER} | values
        self.rows.setdefault(table, []).append(row(table, **given))

    def line(self, at: int, kind: str, **values: Any) -> None:
        number = len(self.rows.get(COORDINATOR_EVENTS, ()))
        place = {"source_id": "server.log", "line_no": number, "broker_id": 1}
        self.add(COORDINATOR_EVENTS, event_at=at, event_kind=kind, **place | values)

    def poll(self, at: int, kind: str, subject: str, body: str) -> None:
        self.add(ADMIN_OBSERVATIONS, observed_at=at, source="kafka-python", kind=kind, subject=subject, body=body)

    def record(self, at: int, partition: int, group: str) -> None:
        self.add(
            COORDINATOR_RECORDS, record_at=at, source_partition=partition, group_id=group, record_kind="GroupMetadata"
        )

    def group(self, name: str, partition: int, last: int = NOW, members: int = 3, **values: Any) -> None:
        """A classic group with members, the first of which leads; it was stable when nothing else is given."""
        fields = {
            "incarnation": 0, "group_type": "consumer", "group_protocol": "classic", "state": "Stable",
            "generation_id": 4, "member_count": members, "first_seen_at": NOW - 600 * MINUTE, "last_record_at": last,
            "is_deleted": False, "evidence": "observed",
        }  # fmt: skip
        self.add(GROUPS, group_id=name, **fields | values)
        number = {"group_id": name, "incarnation": 0, "generation_id": 4}
        self.add(
            GENERATIONS, joined_at=NOW - 500 * MINUTE, synced_at=NOW - 500 * MINUTE, source_partition=partition,
            is_empty=False, **number,
        )  # fmt: skip
        for index in range(members):
            self.add(GENERATION_MEMBERS, **number, **member(name, index))

    def found(self, pattern: str | None = None) -> list[dict[str, Any]]:
        for table, rows in self.rows.items():
            write(self.warehouse, table, rows)
        found = [dict(row) for row in scan_clusters(self.warehouse)]
        return [row for row in found if pattern in (None, row["pattern"])]


def member(group: str, index: int, **values: Any) -> dict[str, Any]:
    fields = {
        "member_id": f"{group}-{index}-id", "client_id": f"{group}-{index}", "client_host": f"/10.0.0.{index}",
        "session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000, "is_leader": index == 0,
        "valid_from_at": NOW - 500 * MINUTE, "subscribed_topics": ["orders"],
    }  # fmt: skip
    return fields | values
