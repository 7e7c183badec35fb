"""Writes a small warehouse of silver tables with deltalake: scripted groups whose numbers fit together.

    python testing/sample/history.py DIR

Times are relative to `now`, so that relative ranges show something.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa
from deltalake import write_deltalake

from pipelines.arrow_types import TYPES as STORED
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from schemas.gold import BY_GROUP, CAUSES, DIFFERENCES, MARKS, STORMS
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import RESOURCES, Table

CLUSTER = "prod-eu"
TYPES = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<INT>": pa.list_(pa.int32()),
    DIFFERENCES: pa.list_(
        pa.struct(
            [
                ("attribute", pa.string()),
                ("value", pa.string()),
                ("share", pa.float64()),
                ("baseline", pa.float64()),
                ("lift", pa.float64()),
            ]
        )
    ),
    BY_GROUP: STORED[BY_GROUP],
    CAUSES: STORED[CAUSES],
    "BINARY": pa.binary(),
    RESOURCES: pa.list_(pa.struct([("name", pa.string()), ("index", pa.int32())])),
}

Rows = dict[str, list[dict[str, Any]]]


def schema(table: Table) -> pa.Schema:
    return pa.schema([pa.field(c.name, TYPES[c.type], nullable=c.name not in table.key) for c in table.columns])


def write(warehouse: Path, rows: Rows, mode: str = "append") -> None:
    known = (*SILVER, *REASSIGNMENT_TABLES, STORMS, MARKS, *OPERATIONS)
    for table in (*known, COVERAGE, QUARANTINE, ADMIN_OBSERVATIONS, OFFSET_COMMITS, COORDINATOR_EVENTS):
        shape = schema(table)
        data = [
            {
                f.name: datetime.fromtimestamp(row[f.name] / 1000, UTC)
                if pa.types.is_timestamp(f.type) and row.get(f.name) is not None
                else row.get(f.name)
                for f in shape
            }
            for row in rows.get(table.name, [])
        ]
        write_deltalake(str(warehouse / table.name), pa.Table.from_pylist(data, schema=shape), mode=mode)


class History:
    """One group's story, told generation by generation."""

    def __init__(
        self, group: str, *, topic: str = "orders", partitions: int = 12, mode: str = "eager", cluster: str = CLUSTER
    ) -> None:
        self.key = {"cluster": cluster, "group_id": group, "incarnation": 0}
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
        """A rebalance that starts at `at` and waits `wait` ms for its members; the lost stopped `silent` ms before."""
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
                "member_count": len(members), "static_member_count": sum(self.members[m][0] is not None for m in members),
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
                    "stopped_ms_max": ms[2], "last_commit_at": early, "last_committed_offset": 120 * self.number + index,
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


def churny(now: int, group: str = "billing-worker", topic: str = "orders", client: str = "billing") -> Rows:
    """Joins, a polite leave, a killed member that everyone's partitions wait for, a poll timeout; observed by a log."""
    h, minute = History(group, topic=topic), 60_000
    t = now - 52 * minute
    a, b, c = (h.member(f"{client}-{i}") for i in (1, 2, 3))
    h.rebalance(t, [a], "first_member", by=a)
    h.rebalance(t + 2 * minute, [a, b], "member_joined", by=b, wait=1800, slowest=a)
    h.rebalance(t + 4 * minute, [a, b, c], "member_joined", by=c, wait=2400, slowest=b)
    h.rebalance(t + 15 * minute, [a, c], "member_left", by=b, wait=900, reason="the member left with LeaveGroup")
    h.rebalance(
        t + 24 * minute, [a], "session_expired", by=c, wait=24_000, silent=45_000, slowest=a,
        reason="removing member on heartbeat expiration",
    )  # fmt: skip
    d, e = h.member(f"{client}-2"), h.member(f"{client}-3")
    h.rebalance(t + 26 * minute, [a, d, e], "member_joined", by=d, wait=2000, slowest=a)
    h.rebalance(t + 38 * minute, [a, e], "poll_timeout", by=d, wait=1500, silent=9000)
    f = h.member(f"{client}-2")
    h.rebalance(t + 38 * minute + 9000, [a, e, f], "member_joined", by=f, wait=700, slowest=e)
    return h.end(now, first_seen=t)


def guessed(now: int) -> Rows:
    """The same kind of story from the topic alone: starts are bounded, departures inferred."""
    h, minute = History("shipping-planner", topic="shipments", partitions=6), 60_000
    t = now - 40 * minute
    a, b = h.member("rdkafka"), h.member("rdkafka2")
    h.rebalance(t, [a], "first_member", by=a)
    h.rebalance(t + 8 * minute, [a, b], "member_joined", observed=False, wait=6000)
    h.rebalance(t + 21 * minute, [a], "member_left", observed=False, wait=11_000)
    return h.end(now, first_seen=t)


def cooperative(now: int) -> Rows:
    h, minute = History("search-indexer", topic="documents", partitions=24, mode="cooperative"), 60_000
    t = now - 33 * minute
    a, b, c = (h.member(f"indexer-{i}") for i in (1, 2, 3))
    h.rebalance(t, [a, b], "first_member", by=a)
    h.rebalance(t + 12 * minute, [a, b, c], "member_joined", by=c, wait=3100)
    h.rebalance(t + 12 * minute + 5000, [a, b, c], "cooperative_followup", by=a, wait=300)
    return h.end(now, first_seen=t)


def static(now: int) -> Rows:
    h, minute = History("pricing-static", topic="prices", partitions=6), 60_000
    t = now - 47 * minute
    members = [h.member("pricing", f"pricing-{i}") for i in range(3)]
    h.rebalance(t, members, "first_member", by=members[0])
    h.event(t + 20 * minute, "static_returned", members[1], detail="replaced an earlier process")
    return h.end(now, first_seen=t)


def nightly(now: int) -> Rows:
    h, minute = History("nightly-report", topic="orders", partitions=3), 60_000
    t = now - 45 * minute
    a = h.member("report")
    h.rebalance(t, [a], "first_member", by=a)
    h.rebalance(t + 9 * minute, [], "member_left", by=a, wait=5)
    return h.end(now, first_seen=t)


def stuck(now: int) -> Rows:
    h, minute = History("payments-loader", topic="payments", partitions=4), 60_000
    t = now - 30 * minute
    a, b = h.member("loader-1"), h.member("loader-2")
    h.rebalance(t, [a, b], "first_member", by=a)
    return h.end(now, first_seen=t, state="PreparingRebalance", open_since=now - 90_000)


def unknown(now: int) -> Rows:
    return History("stock-loader-next").end(now, first_seen=now - 20 * 60_000, state="Unknown")


def hostile(now: int, ids: Iterable[str]) -> Rows:
    """Each string as group, topic, client and member at once."""
    out: Rows = {}
    for i, text in enumerate(ids):
        h, t = History(text, topic=text or "empty", partitions=2), now - 25 * 60_000 - i * 1000
        h.key["cluster"] = CLUSTER
        a, b = h.member(text + "a"), h.member(text + "b")
        h.rebalance(t, [a], "first_member", by=a, reason=text)
        h.rebalance(t + 300_000, [a, b], "member_joined", by=b, slowest=a, reason=text)
        h.event(t + 400_000, "settings_changed", b, detail=text)
        merge(out, h.end(now, first_seen=t), operations(now, text))
    return out


def operations(now: int, text: str) -> Rows:
    """A job that failed for this reason, and a rule that its row broke."""
    run = {"job": text, "run_id": text, "told_at": now, "started_at": now, "ended_at": now, "outcome": "failed"}
    rule = {"table_name": text, "checked_at": now, "rule": text, "table_id": text, "version": 0, "severity": "error"}
    failed = {"sentence": text, "passed": False, "rows_checked": 2, "rows_failed": 1, "examples": [text]}
    return {"job_runs": [run | {"error": text, "host": text}], "quality_results": [rule | failed]}


def merge(into: Rows, *more: Rows) -> Rows:
    for rows in more:
        for name, found in rows.items():
            into.setdefault(name, []).extend(found)
    return into


def coverage(now: int) -> Rows:
    row = {
        "cluster": CLUSTER, "source": "__consumer_offsets", "source_partition": 7, "log_epoch": 0, "from_offset": 0,
        "to_offset": 2000, "is_gap": False, "from_at": now - 52 * 60_000, "to_at": now, "records": 2000, "skipped": 0,
        "quarantined": 0,
    }  # fmt: skip
    return {"coverage": [row]}


def moves(now: int) -> Rows:
    """Of topic `orders`: one partition runs, one is stalled, one was cancelled, one ended and nobody knows how."""
    first = {
        "cluster": CLUSTER, "topic": "orders", "partition": 0, "started_at": now - 40 * 60_000,
        "started_at_earliest": now - 40 * 60_000 - 900, "original_replicas": [1, 0, 2], "target_replicas": [2, 3, 5],
        "replicas": [2, 3, 5, 0, 1], "adding": [3, 5], "removing": [0, 1], "leader": 1, "isr": [0, 1, 2],
        "state": "running", "phase": "replicas_added", "bytes_total": 80_000_000, "bytes_done": 20_000_000,
        "progress": 0.25, "bytes_per_second": 1_300_000.0, "eta_at": now + 46_000, "last_observed_at": now,
        "sources": ["poll"], "evidence": "bounded",
    }  # fmt: skip
    stalled = {
        "partition": 1, "state": "stalled", "stalled_since_at": now - 90_000, "eta_at": None, "bytes_per_second": 0.0,
        "phase": "caught_up",
    }  # fmt: skip
    ended = {"completed_at": now - 20 * 60_000, "completed_at_earliest": now - 20 * 60_000 - 900, "eta_at": None}
    cancelled = ended | {"partition": 2, "state": "cancelled", "started_at_earliest": None}
    unknown = {"partition": 3, "state": None, "bytes_total": None, "bytes_done": None, "bytes_per_second": None}
    return {"reassignments": [first, first | stalled, first | cancelled, first | ended | unknown]}


def announced(now: int) -> Rows:
    """A deploy 3 s before `billing-worker` lost a member, one of another group, and work on the cluster."""
    said = {"cluster": CLUSTER, "group_id": None, "marked_by": "ci"}
    return {
        "marks": [
            said | {"marked_at": now - 28 * 60_000 - 3_000, "kind": "deploy", "text": "v2.31"},
            said | {"marked_at": now - 20 * 60_000, "kind": "deploy", "text": "v7", "group_id": "search-indexer"},
            said | {"marked_at": now - 12 * 60_000, "kind": "maintenance", "text": "broker 3 gets new disks", "marked_by": None},
        ]
    }  # fmt: skip


def _hit(group: str, rebalances: int, lost: float) -> dict[str, Any]:
    lengths = dict.fromkeys(("lost_resource_seconds_min", "lost_resource_seconds", "lost_resource_seconds_max"), lost)
    return {"group_id": group, "rebalances": rebalances} | lengths


def storms(now: int) -> Rows:
    """Two groups that shook together after a deploy, and one group that still does, of which nothing stands out."""
    began = now - 28 * 60_000
    together = {
        "cluster": CLUSTER, "storm_id": "together", "scope": "fleet", "started_at": began, "detected_at": began + 45_000,
        "ended_at": began + 3 * 60_000, "is_open": False, "groups": 2, "group_ids": ["imports-joiner", "billing-worker"],
        "rebalances": 4, "unexplained_rebalances": 3, "lost_resource_seconds_min": 700.5, "lost_resource_seconds": 835.2,
        "lost_resource_seconds_max": 901.0, "suspected_cause": "session_expiry", "score": 0.75,
        "differences": [
            {"attribute": "client_host", "value": "/10.0.4.13", "share": 1.0, "baseline": 0.125, "lift": 8.0},
            {"attribute": "assignor", "value": "range", "share": 1.0, "baseline": 0.0, "lift": 1e6},
        ],
        "causes": [
            {"cause": "session_expiry", "rebalances": 2, "groups": 2}, {"cause": "deploy", "rebalances": 1, "groups": 1},
        ],
        "by_group": [_hit("imports-joiner", 1, 600.0), _hit("billing-worker", 3, 235.2)],
        "evidence": "observed", "explanation": "Two groups lost members within seconds of each other.",
    }  # fmt: skip
    alone = together | {
        "storm_id": "alone", "scope": "group", "started_at": now - 14 * 60_000, "detected_at": now - 13 * 60_000,
        "ended_at": None, "is_open": True, "groups": 1, "group_ids": ["billing-worker"], "rebalances": 2,
        "unexplained_rebalances": 2, "lost_resource_seconds_min": 80.0, "lost_resource_seconds": 90.0,
        "lost_resource_seconds_max": 130.0, "suspected_cause": "unknown", "score": 0.0, "differences": [],
        "causes": [], "by_group": [_hit("billing-worker", 2, 90.0)],
        "evidence": "inferred", "explanation": "It rebalanced far more often than it used to.",
    }  # fmt: skip
    return {"storms": [together, alone]}


def everyday(now: int) -> Rows:
    return merge(
        {},
        *(story(now) for story in (churny, guessed, cooperative, static, nightly, stuck, unknown)),
        churny(now - 60_000, "imports-joiner", "imports", "imports"),
        coverage(now),
        moves(now),
        announced(now),
        storms(now),
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]), everyday(int(time.time() * 1000)))
