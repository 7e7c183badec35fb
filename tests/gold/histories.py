"""Silver rows of groups as they would be recorded, from a short script of events."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

START = 1_800_000_000_000
TOPIC = "orders"


@dataclass
class EagerGroup:
    """A dynamic eager group: `leaves` and `returns` make the generations, members notice after `notice_ms` and give up
    within `callback_ms`.
    """

    members: int = 3
    partitions: int = 12
    notice_ms: int = 300
    callback_ms: int = 2
    session_ms: int = 45_000
    java: bool = True
    logged: bool = True
    client: str = "app-{index}"
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.generation, self.born, self.up = 0, 0, {}
        self.owners: dict[int, str] = {}
        for index in range(self.members):
            self.up[index] = self._born(index)
            self._event(START, "joined", self.up[index])
        self._generation(START, 3_000, "first_member", stops={}, left=[])

    def leaves(
        self, index: int, at: int, *, how: str = "left", silent_ms: int | None = None, trigger: str = "member_left"
    ) -> None:
        """The member stops at `at` and is removed `silent_ms` later; without it, the member leaves once its callback is
        done.
        """
        silent_ms = self.callback_ms if silent_ms is None else silent_ms
        gone, start = self.up.pop(index), START + at + silent_ms
        self._event(start, how, gone)
        stops = self._noticed(start) | {gone: START + at}
        self._generation(start, self._wait(), trigger, stops=stops, left=[gone])

    def returns(self, index: int, at: int) -> None:
        stops = self._noticed(START + at)
        self.up[index] = self._born(index)
        self._event(START + at, "joined", self.up[index])
        self._generation(START + at, self._wait(), "member_joined", stops=stops, left=[])

    def restarts(self, index: int, at: int, away_ms: int) -> None:
        self.leaves(index, at)
        self.returns(index, at + away_ms)

    def silver(self) -> dict[str, list[dict[str, Any]]]:
        return {name: list(self.rows[name]) for name in ("generations", "generation_members", "stalls", "group_events")}

    def _wait(self) -> int:
        return self.notice_ms + self.callback_ms

    def _noticed(self, start: int) -> dict[str, int]:
        return {member: start + self.notice_ms - place for place, member in enumerate(self.up.values())}

    def _born(self, index: int) -> str:
        self.born += 1
        return f"{self.client.format(index=index)}|{self.born}"

    def _event(self, at: int, kind: str, member: str) -> None:
        self.rows["group_events"].append(
            {"event_at": at, "kind": kind, "member_id": member, "evidence": "observed" if self.logged else "bounded"}
            | {"incarnation": 0, "generation_id": self.generation + 1, "detail": None, "group_instance_id": None}
            | {"client_id": member.split("|")[0], "client_host": "/10.0.0.1"}
        )

    def _generation(self, start: int, wait: int, trigger: str, *, stops: dict[str, int], left: list[str]) -> None:
        self.generation += 1
        joined, synced = start + wait, start + wait + 5
        before, members = dict(self.owners), sorted(self.up.values())
        self.owners = (
            {p: members[p * len(members) // self.partitions] for p in range(self.partitions)} if members else {}
        )
        known = {row["member_id"] for row in self.rows["generation_members"]}
        new = [m for m in members if m not in known]
        named = next(iter(left or new), None) if self.logged else None
        common = {"incarnation": 0, "generation_id": self.generation, "cluster": "kafka", "group_id": "orders-app"}
        self.rows["generations"].append(
            common
            | {
                "joined_at": joined,
                "synced_at": synced if members else None,
                "completed_at": synced,
                "group_type": "consumer",
            }
            | {"group_protocol": "classic", "assignor": "range" if members else None, "is_empty": not members}
            | {"rebalance_mode": "eager" if before else "unknown", "prepared_at": start if self.logged else None}
            | {"prepared_at_latest": joined, "sync_ms": 5, "rebalance_ms": wait + 5, "trigger": trigger}
            | {"joined_member_ids": new, "left_member_ids": left}
            | {"resources_assigned": len(self.owners), "outcome": "completed", "source_offset": self.generation}
            | {"member_count": len(members), "last_completed_at": None}
            | {"not_costed": None, "join_ms": wait if self.logged else None}
            | {"source_partition": 3}
            | {"trigger_evidence": "observed" if self.logged else "inferred", "trigger_member_id": named}
            | {"slowest_member_id": None, "slowest_waited_ms": None, "leader_member_id": min(members, default=None)}
            | {"client_reason": "need to re-join" if self.java and members else None, "trigger_reason": None}
        )
        for member in members:
            mine = [{"name": TOPIC, "index": p} for p, owner in self.owners.items() if owner == member]
            self.rows["generation_members"].append(
                common
                | {
                    "member_id": member,
                    "group_instance_id": None,
                    "client_id": member.split("|")[0],
                    "client_host": "/10.0.0.1",
                    "client_library": "java" if self.java else "librdkafka",
                }
                | {"session_timeout_ms": self.session_ms, "rebalance_timeout_ms": 300_000, "subscribed_topics": [TOPIC]}
                | {
                    "assigned": mine,
                    "owned": [],
                    "previous_generation_id": None,
                    "valid_from_at": synced,
                    "valid_to_at": None,
                }
                | {"rejoined_at_earliest": None, "rejoined_at_latest": None}
                | {"is_leader": member == members[0], "connect_delay_ms": None}
            )
        for partition, owner in before.items():
            at = stops[owner]
            self.rows["stalls"].append(
                common
                | {"stopped_by_offset": self.generation, "log_epoch": 0, "name": TOPIC, "index": partition}
                | {"from_member_id": owner, "to_member_id": self.owners.get(partition), "stopped_at_earliest": at - 200}
                | {"last_commit_at": at - 200}
                | {"stopped_at_latest": at, "resumed_at_earliest": synced if members else None}
                | {
                    "resumed_at_latest": synced + 100 if members else None,
                    "cause": "eager_barrier" if members else "no_member",
                }
                | {
                    "stopped_ms_min": synced - at,
                    "stopped_ms": synced - at if members else None,
                    "stopped_ms_max": synced + 300 - at,
                    "last_commit_at": None,
                }
            )
