"""Log lines of Connect workers: when assigned work started, and when it stopped.

A worker's lines contain its group and its `client.id`, which several workers may share. Only "Successfully synced
group" contains the member id. So later lines of the same source and client belong to that member in that generation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pipelines.silver.generations import Generation
from pipelines.silver.history import Event
from schemas.coordinator_log import EventKind

NEAR_MS = 1_000
"""Maximum milliseconds between a worker's line about an assignment and the record of that assignment. If the line is
later or the clocks differ by more, the lines are ignored.
"""


@dataclass(slots=True)
class _Round:
    """The lines of one member between the assignments of two consecutive generations."""

    synced: Event
    lines: dict[EventKind, Event]


class WorkerLog:
    """The workers' lines of one group, searchable by member and generation."""

    def __init__(self, lines: list[Event]) -> None:
        streams: dict[tuple[str, str], list[Event]] = defaultdict(list)
        for line in lines:
            streams[line["source_id"], line["client_id"]].append(line)
        self._rounds: dict[tuple[str, int], _Round] = {}
        for of_worker in streams.values():
            if not _is_shared(of_worker):
                self._rounds |= _rounds(of_worker)

    def logged_at(self, member_id: str, g: Generation, kind: EventKind) -> int | None:
        """Return when a worker logged a line after it had synced `g`, in milliseconds; None if that is not known.

        `WORKER_STARTED`: it had started the resources that `g` assigned. `WORKER_STOPPED`: it had stopped the resources
        that `g` revoked. `WORKER_STOPPING`: it began to stop everything, before it leaves.
        """
        found = self._rounds.get((member_id, g.number))
        if found is None or not g.synced_at - NEAR_MS <= found.synced.at <= g.synced_at + NEAR_MS:
            return None
        line = found.lines.get(kind)
        return line.until if line is not None else None


def _is_shared(lines: list[Event]) -> bool:
    """Return whether the lines come from two workers with one name on one source. They cannot be distinguished."""
    members: dict[int, str] = {}
    synced = (line for line in lines if line.kind == EventKind.WORKER_SYNCED)
    return any(members.setdefault(line["generation_id"], line["member_id"]) != line["member_id"] for line in synced)


def _rounds(lines: list[Event]) -> dict[tuple[str, int], _Round]:
    out: dict[tuple[str, int], _Round] = {}
    current: _Round | None = None
    for line in lines:
        if line.kind == EventKind.WORKER_SYNCED:
            current = out[line["member_id"], line["generation_id"]] = _Round(line, {})
        elif current is not None:
            current.lines.setdefault(EventKind(line.kind), line)
    return out
