"""A group's history split at protocol changes: the online migration of KIP-848, or a new group with an old id."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from pipelines.silver.history import Event, History, Record
from schemas.states import GroupProtocol

NEAR_MS = 1_000
"""Maximum difference in milliseconds between a conversion's log line and its records. A line may have a precision of
one second.
"""

PREFIXES = {
    "ConsumerGroup": GroupProtocol.CONSUMER,
    "StreamsGroup": GroupProtocol.STREAMS,
    "ShareGroup": GroupProtocol.SHARE,
}


@dataclass(slots=True, kw_only=True)
class Phase:
    """Consecutive records of one protocol.

    A conversion writes the tombstones of the old protocol and the records of the new protocol with the same timestamp.
    Then the phase before it `is_handed_on`, and the phase after it `is_taken_over`.
    """

    protocol: GroupProtocol
    history: History
    is_taken_over: bool = False
    is_handed_on: bool = False
    records: list[Record] = field(default_factory=list)


def protocol_of(kind: str) -> GroupProtocol:
    """Return the protocol that writes records of this kind."""
    return next((p for prefix, p in PREFIXES.items() if kind.startswith(prefix)), GroupProtocol.CLASSIC)


def phases(history: History) -> list[Phase]:
    """Return the phases in order. A history without records is one classic phase.

    Lines near a border belong to both phases.
    """
    out: list[Phase] = []
    for record in history.records:
        protocol = protocol_of(record.kind)
        if not out or out[-1].protocol != protocol:
            out.append(Phase(protocol=protocol, history=history))
        out[-1].records.append(record)
    for before, after in pairwise(out):
        before.is_handed_on = after.is_taken_over = _is_conversion(before.records[-1], after.records)
    for index, phase in enumerate(out):
        since = None if index == 0 else phase.records[0].at
        until = out[index + 1].records[0].at if index + 1 < len(out) else None
        phase.history = replace(history, records=phase.records, events=_between(history.events, since, until))
    return out or [Phase(protocol=GroupProtocol.CLASSIC, history=history)]


def _is_conversion(last: Record, following: list[Record]) -> bool:
    at_once = [r for r in following if r.at == last.at]
    return last.value is None and last.at is not None and any(r.value is not None for r in at_once)


def _between(events: list[Event], since: int | None, until: int | None) -> list[Event]:
    return [
        e
        for e in events
        if (since is None or e.until >= since - NEAR_MS) and (until is None or e.at <= until + NEAR_MS)
    ]
