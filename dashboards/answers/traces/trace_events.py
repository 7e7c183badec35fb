"""Tracks of slices as events of the Trace Event Format (JSON), which Perfetto and chrome://tracing open.

Slices of one thread must nest. A slice that overlaps another without nesting therefore gets a further thread of the
same name. Times are epoch milliseconds here and epoch microseconds in events (`ts`, `dur`), as the format demands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

FIRST_THREAD = 100
"""Thread ids are unique in a trace and differ from process ids, because viewers take a thread whose id is that of its
process for the main thread.
"""

Event = dict[str, Any]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A span of a track. `inner` is the part that is certain, if it is shorter; it lies inside the slice."""

    name: str
    start: int
    end: int
    arguments: Arguments = field(default_factory=dict)
    inner: Slice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A point in time on a track."""

    name: str
    at: int
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A named row of slices and instants, in any order."""

    name: str
    slices: Sequence[Slice] = ()
    instants: Sequence[Instant] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSection:
    """Tracks under one heading, which viewers show as a process. `counters` maps a name to (time, value) steps."""

    name: str
    tracks: Sequence[Track] = ()
    counters: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)


def trace_events(sections: Iterable[TraceSection]) -> list[Event]:
    """Return the events of the sections, in their order: names first, then the others by time."""
    named: list[Event] = []
    timed: list[Event] = []
    tids = count(FIRST_THREAD)
    for pid, section in enumerate(sections, start=1):
        named.append(_metadata("process_name", pid, 0, name=section.name))
        named.append(_metadata("process_sort_index", pid, 0, sort_index=pid))
        for track in section.tracks:
            for row, slices in enumerate(_rows(track.slices)):
                tid = next(tids)
                named.append(_metadata("thread_name", pid, tid, name=track.name))
                named.append(_metadata("thread_sort_index", pid, tid, sort_index=tid))
                timed += [event for each in slices for event in _of_slice(each, pid, tid)]
                timed += [_instant(each, pid, tid) for each in track.instants if not row]
        timed += [
            {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": _micros(at), "args": {"value": value}}
            for name, steps in section.counters.items()
            for at, value in steps
        ]
    # The sort is stable, and an outer slice comes before its inner one.
    return named + sorted(timed, key=lambda event: event["ts"])


def _rows(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Return the slices in as few rows as needed for no two in a row to overlap; at least one row."""
    rows: list[list[Slice]] = [[]]
    for each in sorted(slices, key=lambda s: (s.start, s.end)):
        free = next((row for row in rows if not row or row[-1].end <= each.start), None)
        if free is None:
            rows.append(free := [])
        free.append(each)
    return rows


def _of_slice(each: Slice, pid: int, tid: int) -> list[Event]:
    event = {
        "ph": "X", "name": each.name, "pid": pid, "tid": tid, "ts": _micros(each.start),
        "dur": _micros(each.end - each.start), "args": dict(each.arguments),
    }  # fmt: skip
    return [event, *(_of_slice(each.inner, pid, tid) if each.inner is not None else ())]


def _instant(each: Instant, pid: int, tid: int) -> Event:
    return {
        "ph": "i", "s": "t", "name": each.name, "pid": pid, "tid": tid, "ts": _micros(each.at),
        "args": dict(each.arguments),
    }  # fmt: skip


def _metadata(kind: str, pid: int, tid: int, **arguments: Any) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": arguments}


def _micros(ms: int) -> int:
    return ms * 1000
