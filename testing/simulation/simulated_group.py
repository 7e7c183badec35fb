"""Silver rows of one simulated group, made from events of its members as the coordinator would have handled them.

Only the columns that storm detection uses. In the classic protocol, join phases wait for dead members; departures and
arrivals within one join phase share a generation; cooperative groups have a follow-up; static members return without a
new generation.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Any

SESSION_MS = 45_000
KINDS = ("eager", "cooperative", "static", "kip848", "streams", "connect")
Row = dict[str, Any]


@dataclass(kw_only=True)
class Instance:
    """One running instance. `renames`: every pod has a new client id; with a # in it, every process."""

    name: str
    host: str
    threads: int = 1
    renames: bool = False
    members: list[str] = field(default_factory=list)
    is_up: bool = False


@dataclass(kw_only=True)
class Simulated:
    """A simulated group.

    `kind` is one of KINDS. `is_logged`: the coordinator's log exists. `is_java`: clients give reasons. `is_polite`: a
    stopped process leaves the group. `with_members`: `members` gets rows of `generation_members` too. The other methods
    schedule events, in any order of time, and `rows` plays them.
    """

    group_id: str
    kind: str
    rng: Random
    instances: list[Instance]
    is_logged: bool = True
    is_java: bool = True
    is_polite: bool = True
    partition: int = 0
    coordinator_id: int = 1
    with_members: bool = False

    def __post_init__(self) -> None:
        self._agenda: list[tuple[int, int, str, tuple[Any, ...]]] = []
        self._order = itertools.count()
        self.generations: list[Row] = []
        self.events: list[Row] = []
        self.members: list[Row] = []
        self._number = 0
        self._births = itertools.count()
        self._open_until: int | None = None
        self._waiting: list[Row] = []
        self._trigger = ""
        self._dying: dict[str, int] = {}
        self._clients: dict[str, tuple[str, str, str | None]] = {}
        self._skipped = 0
        self._began = 0

    # --- what may happen ---------------------------------------------------------------------------------------------

    def do(self, at: int, what: str, *arguments: Any) -> None:
        heapq.heappush(self._agenda, (int(at), next(self._order), what, arguments))

    def restart(self, at: int, index: int, away_ms: int, *, killed: bool = False, moves: bool = False) -> None:
        """Schedule a restart. `moves`: another pod starts, with another address."""
        self.do(at, "stop", index, killed or not self.is_polite)
        self.do(at + away_ms, "start", index, moves)

    def deploy(self, at: int, *, pause_ms: int, away_ms: int) -> int:
        """Schedule a rolling restart; return its end."""
        for index in range(len(self.instances)):
            self.restart(at, index, away_ms, moves=self.instances[index].renames)
            at += away_ms + pause_ms
        return at

    # --- playing -----------------------------------------------------------------------------------------------------

    def rows(self) -> tuple[list[Row], list[Row]]:
        """Return the rows of generations and of group_events."""
        while self._agenda:
            at, _, what, arguments = heapq.heappop(self._agenda)
            if self._open_until is not None and at > self._open_until:
                self._close()
            getattr(self, f"_{what}")(at, *arguments)
        if self._open_until is not None:
            self._close()
        return self.generations, self.events

    def _start(self, at: int, index: int, moves: bool = False) -> None:  # noqa: FBT001, FBT002 - of a schedule
        instance = self.instances[index]
        if instance.is_up:
            return
        instance.is_up = True
        if moves:
            instance.host = f"/10.0.{self.rng.randrange(4)}.{self.rng.randrange(10)}"
        if instance.renames and (moves or "#" in instance.name):
            instance.name = self._renamed(instance.name)
        if self.kind == "static":
            self._return_static(at, instance)
            return
        for thread in range(instance.threads):
            self._join(at + thread * 50, instance, thread)

    def _renamed(self, name: str) -> str:
        """Return the name of the next pod of a deployment, or of an application that makes a UUID at each start."""
        letters = "".join(self.rng.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        if "#" in name:
            return f"{name.split('#', maxsplit=1)[0]}#{self.rng.randrange(1 << 32):08x}"
        return f"{self.group_id}-7c9f8d6b5-{letters}"

    def _join(self, at: int, instance: Instance, thread: int, member: str | None = None) -> None:
        member = member or f"m{next(self._births)}"
        instance.members.append(member)
        client = instance.name if instance.threads == 1 else f"{instance.name}-StreamThread-{thread + 1}-consumer"
        static = instance.name if self.kind == "static" else None
        self._clients[member] = (client, instance.host, static)
        reason = "need to re-join with the given member-id" if self.is_java else None
        self._event(at, "joined", member, detail=reason)
        self._rebalance(at, "member_joined")

    def _return_static(self, at: int, instance: Instance) -> None:
        old = next((m for m in instance.members if m in self._dying), None)
        if old is None:
            instance.members.clear()
            self._join(at, instance, 0)
            return
        del self._dying[old]
        member = f"m{next(self._births)}"
        instance.members = [member]
        self._clients[member] = self._clients[old]
        self._event(at, "static_returned", member, detail=f"replaced {old}", now=True)
        self._listed([member], at, self.generations[-1]["generation_id"])

    def _stop(self, at: int, index: int, is_killed: bool) -> None:  # noqa: FBT001 - of a schedule
        instance = self.instances[index]
        if not instance.is_up:
            return
        instance.is_up = False
        silent = is_killed or self.kind in ("streams", "static")
        for member in list(instance.members):
            if silent:
                self._dying[member] = at + SESSION_MS
                self.do(at + SESSION_MS, "expire", instance, member)
            else:
                instance.members.remove(member)
                self._event(at, "left", member)
        if not silent:
            self._rebalance(at, "member_left")

    def _expire(self, at: int, instance: Instance, member: str) -> None:
        if member not in instance.members or member not in self._dying:
            return
        del self._dying[member]
        instance.members.remove(member)
        self._event(at, "session_expired", member)
        self._rebalance(at, "session_expired")

    def _cut(self, at: int, index: int, back_ms: int) -> None:
        """Let the coordinator expel a living process, which comes back with the same identity."""
        instance = self.instances[index]
        for thread, member in enumerate(list(instance.members)):
            if member in self._dying:
                continue
            instance.members.remove(member)
            self._event(at, "session_expired", member)
            self._rebalance(at, "session_expired")
            kept = member if self.kind == "kip848" else None
            self.do(at + back_ms, "back", instance, thread, kept)

    def _poll_timeout(self, at: int, index: int, back_ms: int) -> None:
        instance = self.instances[index]
        if not instance.is_up or not instance.members:
            return
        member = instance.members.pop(0)
        self._event(at, "poll_timeout", member)
        self._rebalance(at, "poll_timeout")
        self.do(at + back_ms, "back", instance, 0, None)

    def _back(self, at: int, instance: Instance, thread: int, member: str | None) -> None:
        """Let an expelled process join again; in the consumer protocol with the member id that it made itself."""
        if instance.is_up:
            self._join(at, instance, thread, member)

    def _again(self, at: int, trigger: str) -> None:
        """Let the same members join again."""
        if any(i.members for i in self.instances):
            self._rebalance(at, trigger)

    def _fail(self, at: int) -> None:
        """Add a rebalance that the leader never synced, then one that completes."""
        self._skipped += 1
        self._again(at, "leader_rejoined")

    def _load(self, at: int, broker: int) -> None:
        self.coordinator_id = broker
        if self.is_logged:
            self.events.append(self._row(at, "coordinator_moved", "", None, None))

    # --- rebalances --------------------------------------------------------------------------------------------------

    def _rebalance(self, at: int, trigger: str) -> None:
        if self._open_until is None:
            self._trigger, self._began = trigger, at
            self._open_until = at + (5 if self.kind == "kip848" else int(self.rng.uniform(20, 3_000)))
        if self.kind != "kip848" and trigger == "member_joined" and self._dying:
            # The coordinator does not know that a killed member will not join.
            self._open_until = max(self._open_until, *self._dying.values())

    def _close(self) -> None:
        at, self._open_until = self._open_until, None
        assert at is not None
        self._number += 1
        members = [m for i in self.instances for m in i.members if m not in self._dying or self.kind != "eager"]
        events, self._waiting = self._waiting, []
        trigger = self._trigger if self._number > 1 else "first_member"
        trigger = trigger if self.is_logged or self.kind == "kip848" else self._from_records(trigger, events)
        common = {"incarnation": 0, "generation_id": self._number}
        for event in events:
            if not self.is_logged:
                self._blur(event, at)
        self.events += [event | common for event in events]
        self.generations.append(
            common
            | {
                "group_id": self.group_id,
                "prepared_at": None,
                "prepared_at_latest": self._began,
                "joined_at": at,
                "completed_at": at + 5,
                "synced_at": at + 5 if members else None,
                "group_type": {"streams": "streams", "connect": "connect"}.get(self.kind, "consumer"),
                "group_protocol": "consumer" if self.kind == "kip848" else "classic",
                "rebalance_mode": {"eager": "eager", "static": "eager", "kip848": "incremental"}.get(
                    self.kind, "cooperative"
                ),
                "trigger": trigger,
                "trigger_member_id": None,
                "trigger_evidence": "observed" if self.is_logged else "inferred",
                "is_empty": not members,
                "member_count": len(members),
                "skipped_generations": self._skipped,
                "coordinator_id": self.coordinator_id if self.is_logged else None,
                "source_partition": self.partition,
            }
        )
        self.generations[-1] |= {
            "joined_member_ids": [e["member_id"] for e in events if e["kind"] == "joined"],
            "left_member_ids": [e["member_id"] for e in events if e["kind"] != "joined"],
        }
        self._listed(members, at + 5, self._number)
        self._number, self._skipped = self._number + self._skipped, 0
        if self.kind in ("cooperative", "streams") and trigger == "member_joined" and len(members) > 1:
            self.do(at + int(self.rng.uniform(100, 3_000)), "again", "cooperative_followup")

    def _listed(self, members: list[str], at: int, generation: int) -> None:
        """Add rows of `generation_members`."""
        if not self.with_members:
            return
        for member in members:
            client, host, static = self._clients[member]
            self.members.append(
                {
                    "group_id": self.group_id,
                    "incarnation": 0,
                    "generation_id": generation,
                    "member_id": member,
                    "group_instance_id": static,
                    "client_id": client,
                    "client_host": host,
                    "session_timeout_ms": None if self.kind == "kip848" else SESSION_MS,
                    "rebalance_timeout_ms": 300_000,
                    "valid_from_at": at,
                }
            )

    @staticmethod
    def _from_records(trigger: str, events: list[Row]) -> str:
        kinds = {e["kind"] for e in events}
        if len(kinds & {"left", "session_expired", "poll_timeout"}) and "joined" in kinds:
            return "unknown"
        return {"poll_timeout": "unknown", "leader_rejoined": "unknown"}.get(trigger, trigger)

    @staticmethod
    def _blur(event: Row, at: int) -> None:
        """Reduce the event to the facts in records."""
        event["event_at"] = at
        event["detail"] = None
        event["evidence"] = "bounded"
        if event["kind"] in ("left", "session_expired", "poll_timeout"):
            event["kind"], event["evidence"] = "left", "inferred"

    def _event(self, at: int, kind: str, member: str, *, detail: str | None = None, now: bool = False) -> None:
        event = self._row(at, kind, member, detail, self._number)
        (self.events if now else self._waiting).append(event)

    def _row(self, at: int, kind: str, member: str, detail: str | None, number: int | None) -> Row:
        client, host, static = self._clients.get(member, (None, None, None))
        return {
            "group_id": self.group_id,
            "event_at": at,
            "kind": kind,
            "member_id": member,
            "incarnation": 0,
            "group_instance_id": static,
            "client_id": client,
            "client_host": host,
            "generation_id": number,
            "detail": detail,
            "evidence": "observed",
        }
