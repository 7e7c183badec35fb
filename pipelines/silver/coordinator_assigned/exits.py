"""The reason for a member's departure: the coordinator's log line, or else a conclusion from the member's commits."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pipelines.silver.coordinator_assigned.epochs import EpochMember
from pipelines.silver.history import Event
from pipelines.silver.phases import NEAR_MS
from pipelines.silver.stops.commit_activity import CommitActivity
from pipelines.silver.stops.member_stops import HEARTBEAT_MS, POLL_TIMEOUT_TEXT
from schemas.coordinator_log import EventKind
from schemas.states import Evidence, Trigger

LEAVING = (EventKind.MEMBER_LEFT, EventKind.LEFT)
DEPARTING = (*LEAVING, EventKind.MEMBER_FENCED, EventKind.REMOVED_NOT_REJOINED, EventKind.REMOVED_NOT_SYNCED)
SHORTEST_SESSION_MS = 5_000
"""Shortest silence in milliseconds that counts as an expired session. A useful group.consumer.session.timeout.ms (45 s
by default) is not below the heartbeat interval, whose smallest default is 5 s.
"""
ON_CLOSE_MS = 500
"""A client that commits on close leaves within this many milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The departure.

    `line` is None if only the tombstone shows it; `trigger` is UNKNOWN if nothing shows the reason.
    """

    trigger: Trigger
    evidence: Evidence
    line: Event | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the member expired, was removed, or left because its poll took too long."""
        return self.trigger not in (Trigger.MEMBER_LEFT, Trigger.UNKNOWN)


class MemberLines:
    """The log lines of one group, by the member that they name."""

    def __init__(self, events: list[Event]) -> None:
        self._by_member: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.kind in DEPARTING and event["member_id"]:
                self._by_member[event["member_id"]].append(event)

    def departure(self, member_id: str, at: int) -> Event | None:
        """Return the line of the departure at this time. The same id may have departed before."""
        near = [e for e in self._by_member.get(member_id, ()) if e.at - NEAR_MS <= at <= e.until + NEAR_MS]
        return min(near, key=lambda e: abs(e.at - at), default=None)


def exit_of(member: EpochMember, at: int, done: CommitActivity, line: Event | None) -> Exit:
    """Return the reason for a departure; `at` is the time at which the coordinator removed the member."""
    silent = None if done.last is None else at - (done.stopped or done.last)
    slow = member.rebalance_timeout_ms
    was_slow = silent is not None and slow is not None and silent >= slow - HEARTBEAT_MS // 2 and silent > HEARTBEAT_MS
    if line is not None and line.kind in LEAVING:
        if POLL_TIMEOUT_TEXT in (line["client_reason"] or ""):
            return Exit(trigger=Trigger.POLL_TIMEOUT, evidence=Evidence.OBSERVED, line=line)
        if was_slow:
            return Exit(trigger=Trigger.POLL_TIMEOUT, evidence=Evidence.INFERRED, line=line)
        return Exit(trigger=Trigger.MEMBER_LEFT, evidence=Evidence.OBSERVED, line=line)
    if line is not None:
        trigger = Trigger(line["trigger"]) if line["trigger"] else Trigger.UNKNOWN
        return Exit(trigger=trigger, evidence=Evidence.OBSERVED, line=line)
    return Exit(trigger=_by_silence(silent, done, was_slow=was_slow), evidence=Evidence.INFERRED)


def _by_silence(silent: int | None, done: CommitActivity, *, was_slow: bool) -> Trigger:
    """Return the reason from the silence before the departure.

    A silence as long as a poll may take has no clear reason, and a short one cannot be an expiry.
    """
    if silent is None or was_slow:
        return Trigger.UNKNOWN
    if silent <= ON_CLOSE_MS + done.interval:
        return Trigger.MEMBER_LEFT
    is_long = silent >= SHORTEST_SESSION_MS and silent >= 3 * done.interval
    return Trigger.SESSION_EXPIRED if is_long else Trigger.UNKNOWN
