"""Observations and log lines of reassignments, made by hand."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


class Polls:
    """Observations of topic `t`, made by hand; times in seconds."""

    def __init__(self) -> None:
        self.seen: list[Row] = []

    def ongoing(self, at: float, *moving: tuple[list[int], list[int], list[int]], partition: int = 0) -> Polls:
        """A list of reassignments: (replicas, adding, removing)."""
        listed = [
            {"topic": "t", "partition": partition, "replicas": replicas, "adding": adding, "removing": removing}
            for replicas, adding, removing in moving
        ]
        return self._add(at, "reassignments", {"ongoing": listed})

    def topic(
        self,
        at: float,
        replicas: list[int],
        isr: list[int] | None = None,
        leader: int | None = None,
        topic_id: str | None = None,
    ) -> Polls:
        entry = {"partition": 0, "replicas": replicas, "isr": isr or replicas, "leader": leader or (isr or replicas)[0]}
        return self._add(at, "topic", {"topic": "t", "topic_id": topic_id, "partitions": [entry]})

    def sizes(self, at: float, answered: list[int], **by_broker: int) -> Polls:
        """`b3=100`: the log of partition 0 on broker 3."""
        replicas = [
            {"broker": int(name[1:]), "topic": "t", "partition": 0, "size": size, "offset_lag": 0, "future": False}
            for name, size in by_broker.items()
        ]
        return self._add(at, "log_dirs", {"brokers": answered, "replicas": replicas})

    def failed(self, at: float) -> Polls:
        return self._add(at, "error", {"call": "list_partition_reassignments", "text": "refused"})

    def _add(self, at: float, kind: str, body: Row) -> Polls:
        self.seen.append({"observed_at": round(at * 1000), "kind": kind, "body": body})
        return self


def line(at: float, kind: str = "assignment_changed", **values: Any) -> Row:
    """A row of `coordinator_events` on partition 0 of `t`; time in seconds."""
    empty = dict.fromkeys(
        [
            "broker_id",
            "topic_id",
            "partition_epoch",
            "replicas",
            "replicas_before",
            "adding",
            "removing",
            "isr",
            "leader",
        ]
    )
    place = {"source_id": "controller-1.log", "line_no": round(at * 1000), "topic": "t", "partition": 0}
    return empty | place | {"event_at": round(at * 1000), "event_kind": kind} | values
