"""What Connect workers' own logs add: when work ran that the group had handed out, and when it stopped.

A worker's lines name its group and its `client.id`, which several workers may share; only "Successfully synced group"
names the member. So the lines after it, of the same source and client, are that member's in that generation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from pipelines.silver.generations import Generation
from pipelines.silver.history import Event
from schemas.coordinator_log import EventKind

NEAR_MS = 1_000
"""A worker whose clock is further from the coordinator's than this, or that was told so late, is not listened to."""


@dataclass(slots=True)
class _Round:
    """The lines of one member from the assignment of one generation to the next."""

    synced: Event
    lines: dict[EventKind, Event]


class WorkerLog:
    """The workers' lines of one group, asked by member and generation."""

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

        `WORKER_STARTED`: by then it had started what `g` gave it. `WORKER_STOPPED`: by then it had stopped what `g`
        took from it. `WORKER_STOPPING`: then it began to stop all it ran, before it leaves.
        """
        found = self._rounds.get((member_id, g.number))
        if found is None or not g.synced_at - NEAR_MS <= found.synced.at <= g.synced_at + NEAR_MS:
            return None
        line = found.lines.get(kind)
        return line.until if line is not None else None


def _is_shared(lines: list[Event]) -> bool:
    """Two members came out of one generation: workers of one name through one topic cannot be told apart."""
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
