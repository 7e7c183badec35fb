"""The log lines of each generation: the coordinator's lines about its start, cause and departures."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.silver.generations import Generation
from pipelines.silver.history import Event
from schemas.coordinator_log import EventKind

NEAR_MS = 1_000
"""Maximum difference in milliseconds between a Stabilized line and the record's currentStateTimestamp. On one machine
they are milliseconds apart, or up to a second if the layout has no milliseconds.
"""

ARRIVED = (EventKind.MEMBER_ADDED, EventKind.STATIC_ADDED)
GONE = (
    EventKind.LEFT,
    EventKind.SESSION_EXPIRED,
    EventKind.REMOVED_NOT_REJOINED,
    EventKind.REMOVED_NOT_SYNCED,
    EventKind.STATIC_REPLACED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationLog:
    """The log lines about one generation; fields without a line are empty.

    `preparing` is the start of this generation. `first_preparing` is the start of the first attempt since the previous
    generation completed; it is the same line unless attempts failed in between. `attempts` are the Stabilized lines of
    the failed attempts. `failover` is the line of another coordinator that loaded the group during the rebalance.
    `loaded` is the last such line since the previous generation completed, whether or not the rebalance had begun.
    `departed` and `arrived` map each member to the first line that names it; `asked` to the line that gave it its id.
    An expired session of another broker than the one that completed the generation counts last, because a broker that
    was frozen may remove members of a group that it has lost meanwhile.
    """

    preparing: Event | None = None
    first_preparing: Event | None = None
    joined: Event | None = None
    synced: Event | None = None
    attempts: tuple[Event, ...] = ()
    failover: Event | None = None
    loaded: Event | None = None
    departures: tuple[Event, ...] = ()
    departed: Mapping[str, Event] = field(default_factory=dict)
    arrived: Mapping[str, Event] = field(default_factory=dict)
    asked: Mapping[str, Event] = field(default_factory=dict)


class LogIndex:
    """The log lines of one group, searchable by generation."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._times = [e.at for e in events]

    def window(self, since: int, until: int) -> list[Event]:
        """Return the lines in `[since, until]`, in order.

        A line with a precision of one second may have a timestamp before `since`.
        """
        low = bisect_left(self._times, since - NEAR_MS)
        high = bisect_right(self._times, until + NEAR_MS)
        return [e for e in self._events[low:high] if e.until >= since and e.at <= until]

    def log_of(self, g: Generation) -> GenerationLog:
        """Return the lines between the completion of the previous generation and the completion of `g`."""
        born = g.created.at if g.created else None
        last = None if born is None else 0
        if g.previous:
            since, last = g.previous.completed_at, g.previous.number
        else:
            longest = max((m.rebalance_timeout_ms for m in g.members.values()), default=0)
            since = max(g.joined_at - longest - NEAR_MS, born or 0)
        lines = self.window(since, max(g.synced_at, g.joined_at) + NEAR_MS)
        if not lines:
            return GenerationLog()
        before_join = [e for e in lines if e.at <= g.joined_at + 1]
        starts = [e for e in before_join if e.kind == EventKind.PREPARING and (e["generation_id"] or 0) < g.number]
        own = [e for e in starts if e["generation_id"] == g.number - 1]
        joined = _nearest(lines, EventKind.EMPTY if g.is_empty else EventKind.STABILIZED, g.number, g.joined_at)
        same_broker = [e for e in own if joined is not None and e["broker_id"] == joined["broker_id"]]
        first = next(iter(own if last is None else starts), None)
        departures = tuple(e for e in lines if e.kind in GONE and e.at <= g.synced_at + 1)
        return GenerationLog(
            preparing=next(iter(same_broker or own), None),
            first_preparing=first,
            joined=joined,
            synced=_nearest(lines, EventKind.ASSIGNMENT_RECEIVED, g.number, g.synced_at),
            attempts=tuple(
                e
                for e in before_join
                if last is not None and e.kind == EventKind.STABILIZED and last < e["generation_id"] <= g.number
                # If a coordinator fails, a number that it did not store is lost.
                # The next coordinator uses the number again.
                if e["generation_id"] < g.number or e.until < g.joined_at - NEAR_MS
            ),
            failover=next(
                (e for e in before_join if e.kind == EventKind.GROUP_LOADED and first is not None and e.at >= first.at),
                None,
            ),
            loaded=next(
                (e for e in reversed(before_join) if last is not None and e.kind == EventKind.GROUP_LOADED), None
            ),
            departures=departures,
            departed=_first_by_member(sorted(departures, key=lambda e: _is_outdated(e, joined))),
            arrived=_first_by_member(e for e in before_join if e.kind in ARRIVED),
            asked=_first_by_member(e for e in before_join if e.kind in (EventKind.MEMBER_ID_GIVEN, *ARRIVED)),
        )

    def unfinished(self, generations: Sequence[Generation]) -> list[Event]:
        """Return the failed attempts after the newest of the group's generations.

        The join phase of such an attempt ended, its leader did not sync, and another attempt followed.
        """
        if not generations:
            return []
        last = generations[-1]
        later = self._events[bisect_left(self._times, last.completed_at) :]
        synced = {e["generation_id"] for e in later if e.kind == EventKind.ASSIGNMENT_RECEIVED}
        overtaken = max((e.at for e in later if e.kind == EventKind.PREPARING), default=0)
        ended = [e for e in later if e.kind == EventKind.STABILIZED and e["generation_id"] > last.number]
        return [e for e in ended if e["generation_id"] not in synced and e.at < overtaken]


def _is_outdated(line: Event, joined: Event | None) -> bool:
    """Return whether a session expired at a broker that did not complete the generation."""
    is_expiry = line.kind == EventKind.SESSION_EXPIRED
    return is_expiry and joined is not None and line["broker_id"] != joined["broker_id"]


def _first_by_member(lines: Iterable[Event]) -> dict[str, Event]:
    found: dict[str, Event] = {}
    for line in lines:
        for member_id in _named(line):
            found.setdefault(member_id, line)
    return found


def _named(line: Event) -> Iterator[str]:
    for name in (line["member_id"], line["replaced_member_id"]):
        if name is not None:
            yield name
    yield from line["member_ids"] or ()


def _nearest(lines: list[Event], kind: EventKind, number: int, at: int) -> Event | None:
    near = [
        e for e in lines if e.kind == kind and e["generation_id"] == number and abs(e.at - at) <= NEAR_MS + e.precision
    ]
    return min(near, key=lambda e: abs(e.at - at), default=None)
