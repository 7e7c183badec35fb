"""One group's history, written generation by generation, as rows of silver whose numbers fit together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from schemas.silver import SILVER
from testing.sample.tables import Rows

CLUSTER = "prod-eu"


class History:
    """One group's history, built generation by generation."""

    def __init__(
        self, group: str, *, topic: str = "orders", partitions: int = 12, mode: str = "eager", cluster: str = CLUSTER
    ) -> None:
        self.key: dict[str, Any] = {"cluster": cluster, "group_id": group, "incarnation": 0}
        self.resources = [(topic, p) for p in range(partitions)]
        self.mode = mode
        self.rows: Rows = {table.name: [] for table in SILVER}
        self.number = 0
        self.owner: dict[tuple[str, int], str] = {}
        self.members: dict[str, tuple[str | None, str]] = {}
        self.at = 0

    def member(self, client: str, instance: str | None = None) -> str:
        member = f"{instance or client}-{uuid5(NAMESPACE_URL, self.key['group_id'] + client + str(self.number))}"
        self.members[member] = (instance, client)
        return member

    def rebalance(
        self,
        at: int,
        members: Iterable[str],
        trigger: str,
        *,
        by: str | None = None,
        wait: int = 3000,
        sync: int = 40,
        silent: int = 0,
        observed: bool = True,
        slowest: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Add a rebalance that starts at `at` and waits `wait` ms for its members; lost members stopped `silent` ms
        before.
        """
        members, previous = list(members), list(dict.fromkeys(self.owner.values()))
        self.number += 1
        joined, synced = at + wait, at + wait + sync
        done = synced if members else joined
        given = (
            {r: members[i * len(members) // len(self.resources)] for i, r in enumerate(self.resources)}
            if members
            else {}
        )
        earliest = at if observed else max(self.at, at - 4000)
        latest = at if observed else joined
        lost = self._stop(at, given, done, silent, set(members), observed=observed)
        moved = sum(self.owner.get(r, m) != m for r, m in given.items())
        self.rows["generations"].append(
            self.key
            | {
                "generation_id": self.number, "joined_at": joined, "outcome": "completed" if members else "empty",
                "group_type": "consumer", "group_protocol": "classic", "protocol_type": "consumer",
                "assignor": "range" if self.mode == "eager" else "cooperative-sticky", "rebalance_mode": self.mode,
                "leader_member_id": members[0] if members else None, "coordinator_id": 1 if observed else None,
                "member_count": len(members),
                "static_member_count": sum(self.members[m][0] is not None for m in members),
                "prepared_at": at if observed else None, "prepared_at_earliest": earliest, "prepared_at_latest": latest,
                "synced_at": synced if members else None, "completed_at": done,
                "join_ms": wait if observed else None, "sync_ms": sync if members else None,
                "rebalance_ms": done - at if observed else None, "rebalance_ms_min": done - latest,
                "rebalance_ms_max": done - earliest, "trigger": trigger,
                "trigger_evidence": "observed" if observed else "inferred", "trigger_member_id": by,
                "trigger_reason": reason, "client_reason": None, "slowest_member_id": slowest,
                "slowest_waited_ms": wait - 200 if slowest else None,
                "joined_member_ids": sorted(set(members) - set(previous)),
                "left_member_ids": sorted(set(previous) - set(members)), "resources_assigned": len(given),
                "resources_moved": moved, "skipped_generations": 0, "is_empty": not members,
                "evidence": "observed" if observed else "bounded", "log_epoch": 0, "source_partition": 7,
                "source_offset": 1000 + self.number,
            }
        )  # fmt: skip
        for row in self.rows["generation_members"]:
            if row["valid_to_at"] is None:
                row["valid_to_at"] = joined
        for i, member in enumerate(members):
            came = at if member == by else joined if member == slowest else at + (wait // 4) * (1 + i % 2)
            instance, client = self.members[member]
            self.rows["generation_members"].append(
                self.key
                | {
                    "generation_id": self.number, "member_id": member, "valid_from_at": synced, "valid_to_at": None,
                    "group_instance_id": instance, "client_id": client, "client_host": f"/10.0.4.{11 + i}",
                    "client_library": "librdkafka", "client_library_sign": "subscription",
                    "client_library_evidence": "inferred",
                    "session_timeout_ms": 45000, "rebalance_timeout_ms": 300000, "is_leader": i == 0,
                    "previous_generation_id": self.number - 1, "subscribed_topics": [self.resources[0][0]],
                    "owned": None, "assigned": [{"name": n, "index": p} for (n, p), m in given.items() if m == member],
                    "rejoined_at_earliest": min(came, joined), "rejoined_at_latest": min(came + 60, joined),
                }
            )  # fmt: skip
        self._comings(at, joined, members, previous, trigger, observed=observed)
        self.rows["rebalances"].append(
            self.key
            | {
                "first_generation_id": self.number, "last_generation_id": self.number, "started_at_earliest": earliest,
                "started_at_latest": latest, "ended_at": done, "generations": 1, "triggers": [trigger],
                "lost_resource_seconds_min": lost[0] / 1000, "lost_resource_seconds": lost[1] / 1000,
                "lost_resource_seconds_max": lost[2] / 1000, "idle_resource_seconds": 0.0,
                "evidence": "observed" if observed else "bounded",
            }
        )  # fmt: skip
        self.owner, self.at = given, done

    def _stop(
        self, at: int, given: dict[Any, str], done: int, silent: int, members: set[str], *, observed: bool
    ) -> list[int]:
        total = [0, 0, 0]
        for stall in self.rows["stalls"]:
            if stall["resumed_at_earliest"] is None and given:
                resource = (stall["name"], stall["index"])
                stall |= {"resumed_at_earliest": done, "resumed_at_latest": done + 50, "to_member_id": given[resource]}
                stall |= {"resumed_generation_id": self.number, "first_commit_at": done + 400}
                stopped = stall["stopped_at_earliest"]
                stall |= {
                    "stopped_ms": done - stopped,
                    "stopped_ms_min": done - stopped,
                    "stopped_ms_max": done - stopped,
                }
        for (name, index), owner in self.owner.items():
            if self.mode == "cooperative" and given.get((name, index)) == owner:
                continue
            gone = owner not in members
            early = at - (silent if gone else 0) - (200 if observed else 3000)
            late = max(early, at if not gone else at - silent + 150)
            ms = [done - late, done - (early + late) // 2, done + 80 - early] if given else [None] * 3
            total = [a + (b or 0) for a, b in zip(total, ms, strict=True)]
            self.rows["stalls"].append(
                self.key
                | {
                    "stopped_by_offset": 1000 + self.number, "name": name, "index": index,
                    "stopped_at_earliest": early, "stopped_at_latest": late, "generation_id": self.number,
                    "resumed_at_earliest": done if given else None, "resumed_at_latest": done + 80 if given else None,
                    "resumed_generation_id": self.number if given else None, "from_member_id": owner,
                    "to_member_id": given.get((name, index)), "stopped_ms_min": ms[0], "stopped_ms": ms[1],
                    "stopped_ms_max": ms[2], "last_commit_at": early,
                    "last_committed_offset": 120 * self.number + index,
                    "first_commit_at": done + 300 + 40 * index if given else None,
                    "first_committed_offset": 120 * self.number + index + 4 if given else None,
                    "cause": "no_member" if not given else "member_lost" if gone and silent else
                    "moved" if self.mode == "cooperative" else "eager_barrier",
                    "evidence": "bounded" if observed else "inferred", "log_epoch": 0,
                }
            )  # fmt: skip
        return total

    def _comings(
        self, at: int, joined: int, members: list[str], previous: list[str], trigger: str, *, observed: bool
    ) -> None:
        if self.number == 1:
            self.event(at, "created")
        for member in sorted(set(members) - set(previous)):
            self.event(at if observed else joined, "joined", member, observed=observed)
        kind = {"session_expired": "session_expired", "poll_timeout": "poll_timeout"}.get(trigger, "left")
        for member in sorted(set(previous) - set(members)):
            self.event(at if observed else joined, kind if observed else "left", member, observed=observed)
        if not members:
            self.event(joined, "empty")

    def event(self, at: int, kind: str, member: str = "", *, observed: bool = True, detail: str | None = None) -> None:
        instance, client = self.members.get(member, (None, None))
        self.rows["group_events"].append(
            self.key
            | {
                "event_at": at, "kind": kind, "member_id": member, "group_instance_id": instance, "client_id": client,
                "client_host": "/10.0.4.11" if member else None, "generation_id": self.number, "detail": detail,
                "evidence": "observed" if observed else "inferred",
            }
        )  # fmt: skip

    def end(self, now: int, *, first_seen: int, state: str | None = None, open_since: int | None = None) -> Rows:
        last = self.rows["generations"][-1] if self.rows["generations"] else None
        known = "Empty" if last is None or last["is_empty"] else "Stable"
        self.rows["groups"].append(
            self.key
            | {
                "group_type": "consumer", "group_protocol": "classic" if last else None,
                "assignor": last["assignor"] if last else None, "state": state or known,
                "state_since_at": open_since or (last["completed_at"] if last else None),
                "generation_id": last["generation_id"] if last else None,
                "member_count": last["member_count"] if last else None, "open_rebalance_since_at": open_since,
                "first_seen_at": first_seen, "last_record_at": now, "is_deleted": state == "Dead",
                "evidence": "observed",
            }
        )  # fmt: skip
        return self.rows
