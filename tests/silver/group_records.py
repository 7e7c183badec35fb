"""Hand-made records of one group, written as the coordinator writes them: each call of `at` is one atomic write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipelines.silver.history import History
from pipelines.silver.rows import silver_rows
from schemas.rows import SilverRows

T1, T2 = "topicAAAAAAAAAAAAAAAAA1", "topicBBBBBBBBBBBBBBBBB2"
Body = tuple[str, str | None, dict[str, Any] | None, dict[str, Any]]


def member(
    member_id: str, *topics: str, instance: str | None = None, prefix: str = "ConsumerGroup", **more: Any
) -> Body:
    value = {
        "instanceId": instance,
        "rackId": None,
        "clientId": f"client-{member_id}",
        "clientHost": "/10.0.0.1",
        "subscribedTopicNames": list(topics or ("orders",)),
        "subscribedTopicRegex": "",
        "rebalanceTimeoutMs": 300_000,
        "serverAssignor": None,
        "classicMemberMetadata": None,
    }
    return f"{prefix}MemberMetadata", member_id, value | more, {}


def epoch(number: int, prefix: str = "ConsumerGroup", **more: Any) -> Body:
    return f"{prefix}Metadata", None, {"epoch": number} | more, {}


def target_epoch(number: int, prefix: str = "ConsumerGroup") -> Body:
    return f"{prefix}TargetAssignmentMetadata", None, {"assignmentEpoch": number}, {}


def target(member_id: str, *partitions: int, topic: str = T1, prefix: str = "ConsumerGroup") -> Body:
    return f"{prefix}TargetAssignmentMember", member_id, {"topicPartitions": tps(partitions, topic)}, {}


def current(
    member_id: str, number: int, *partitions: int, pending: Iterable[int] = (), state: int = 0, topic: str = T1,
    prefix: str = "ConsumerGroup",
) -> Body:  # fmt: skip
    value = {
        "memberEpoch": number,
        "previousMemberEpoch": 0,
        "state": 1 if pending else state,
        "assignedPartitions": tps(partitions, topic),
        "partitionsPendingRevocation": tps(pending, topic),
    }
    return f"{prefix}CurrentMemberAssignment", member_id, value, {}


def tps(partitions: Iterable[int], topic: str) -> list[dict[str, Any]]:
    found = list(partitions)
    return [{"topicId": topic, "partitions": found}] if found else []


def regex(expression: str, *topics: str) -> Body:
    value = {"topics": list(topics), "version": 1, "timestamp": 1}
    return "ConsumerGroupRegularExpression", None, value, {"regularExpression": expression}


def gone(member_id: str, prefix: str = "ConsumerGroup") -> list[Body]:
    kinds = ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata")
    return [(f"{prefix}{kind}", member_id, None, {}) for kind in kinds]


def tombstone(kind: str) -> Body:
    return kind, None, None, {}


def classic(number: int, members: dict[str, tuple[int, ...]], *, at_ms: int, topic: str = "orders") -> Body:
    value = {
        "protocolType": "consumer" if number else "",
        "generation": number,
        "protocol": "range" if members else None,
        "leader": min(members, default=None),
        "currentStateTimestamp": at_ms,
        "members": [
            {
                "memberId": member_id,
                "groupInstanceId": None,
                "clientId": f"client-{member_id}",
                "clientHost": "/10.0.0.1",
                "rebalanceTimeout": 300_000,
                "sessionTimeout": 45_000,
                "subscription": {"topics": [topic], "ownedPartitions": {}, "generationId": -1},
                "assignment": {"partitions": {topic: list(partitions)}},
            }
            for member_id, partitions in members.items()
        ],
    }
    return "GroupMetadata", None, value, {}


class Script:
    """Writes and commits in order; `rows()` is what silver makes of them."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.topic_names: dict[str, str] = {}
        self._offset = 0

    def at(self, ms: int, *bodies: Body) -> Script:
        for kind, member_id, value, key in bodies:
            self.records.append(
                {
                    "log_epoch": 0,
                    "source_partition": 7,
                    "source_offset": self._next(),
                    "record_at": ms,
                    "record_kind": kind,
                    "member_id": member_id,
                    "is_tombstone": value is None,
                    "body": {"key": key, "value": value},
                }
            )
        return self

    def commit(self, ms: int, *partitions: int, topic: str = "orders", topic_id: str | None = T1) -> Script:
        """Commit once: the offset equals the time, so that progress is even."""
        for partition in partitions:
            self.runs.append(
                {
                    "log_epoch": 0, "topic": topic, "partition": partition, "topic_id": topic_id, "is_tombstone": False,
                    "committer_id": None,
                    "first_offset": self._next(), "first_commit_at": ms, "first_committed_offset": ms,
                    "third_last_offset": None, "third_last_commit_at": None, "third_last_committed_offset": None,
                    "before_last_offset": None, "before_last_commit_at": None, "before_last_committed_offset": None,
                    "last_offset": self._offset, "last_commit_at": ms, "last_committed_offset": ms,
                }
            )  # fmt: skip
        return self

    def line(self, ms: int, kind: str, member_id: str | None = None, **more: Any) -> Script:
        names = (
            "group_id", "generation_id", "group_instance_id", "replaced_member_id", "leader_member_id", "member_ids",
            "member_count", "trigger", "reason", "client_reason", "broker_id",
        )  # fmt: skip
        row = dict.fromkeys(names) | {
            "source_id": "broker-1.log", "line_no": len(self.events) + 1, "event_at": ms, "event_precision_ms": 1,
            "event_kind": kind, "member_id": member_id, "raw": f"{ms} {kind} {member_id}",
        }  # fmt: skip
        self.events.append(row | more)
        return self

    def rows(self) -> SilverRows:
        return silver_rows(self.history(), 10_000)

    def history(self) -> History:
        return History.of("c", "g", self.records, self.runs, self.events, self.topic_names)

    def until(self, ms: int) -> History:
        """Return the history as it was known at this time."""
        records = [row for row in self.records if row["record_at"] <= ms]
        runs = [row for row in self.runs if row["last_commit_at"] <= ms]
        return History.of("c", "g", records, runs, self.events, self.topic_names)

    def _next(self) -> int:
        self._offset += 1
        return self._offset
