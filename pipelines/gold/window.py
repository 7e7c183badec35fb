"""A group's silver rows as they were known at the end of a window."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import Silver, number
from schemas.rows import GenerationMemberRow, GenerationRow, GroupEventRow, StallRow

END_MS = 1 << 50
"""A time after all others, in milliseconds."""

OPEN = (
    "resumed_at_earliest",
    "resumed_at_latest",
    "resumed_generation_id",
    "to_member_id",
    "stopped_ms_min",
    "stopped_ms",
    "stopped_ms_max",
)
"""Columns of a stall that has not ended."""


def window(silver: Silver, start_ms: int, end_ms: int) -> Silver:
    """Return the rows of one window. See `Windows.window`."""
    return Windows.of(silver).window(start_ms, end_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Rows of one group by generation, so that a window is found without going through all rows."""

    generations: Sequence[GenerationRow]
    members: Sequence[GenerationMemberRow]
    stalls: Sequence[StallRow]
    events: Sequence[GroupEventRow]
    event_times: Sequence[int]
    members_of: Mapping[Number, Sequence[int]]
    stalls_of: Mapping[Number, Sequence[int]]

    @classmethod
    def of(cls, silver: Silver) -> Self:
        """Return the windows of a group's rows, which may be in any order."""
        events = sorted(silver["group_events"], key=lambda row: row["event_at"])
        return cls(
            generations=sorted(silver["generations"], key=number),
            members=silver["generation_members"],
            stalls=silver["stalls"],
            events=events,
            event_times=[row["event_at"] for row in events],
            members_of=_positions(map(number, silver["generation_members"])),
            stalls_of=_positions((row["incarnation"], row["generation_id"]) for row in silver["stalls"]),
        )

    def window(self, start_ms: int, end_ms: int) -> Silver:
        """Return the rows of the window [start_ms, end_ms), in milliseconds.

        These are the generations that joined in the window, with their members, stalls and events, and the previous
        generation as the initial state. Memberships and stalls that end later are returned as open.
        """
        chosen = self._chosen(start_ms, end_ms)
        first, last = bisect_left(self.event_times, start_ms), bisect_left(self.event_times, end_ms)
        return {
            "generations": chosen,
            "generation_members": [
                _open_after(row, end_ms, "valid_to_at", ("valid_to_at",))
                for at in _together(chosen, self.members_of)
                if (row := self.members[at])["valid_from_at"] < end_ms
            ],
            "stalls": [
                _open_after(row, end_ms, "resumed_at_earliest", OPEN)
                for row in self.stalls_since(chosen, start_ms)
                if row["stopped_at_latest"] < end_ms
            ],
            "group_events": list(self.events[first:last]),
        }

    def stalls_since(self, generations: Iterable[GenerationRow], start_ms: int) -> list[StallRow]:
        """Return the stalls of these generations that began at `start_ms` or later, as they ended at any time."""
        found = (self.stalls[at] for at in _together(generations, self.stalls_of))
        return [row for row in found if row["stopped_at_latest"] >= start_ms]

    def _chosen(self, start_ms: int, end_ms: int) -> list[GenerationRow]:
        before = [g for g in self.generations if g["joined_at"] < start_ms]
        return before[-1:] + [g for g in self.generations if start_ms <= g["joined_at"] < end_ms]


def _positions(numbers: Iterable[Number]) -> Mapping[Number, Sequence[int]]:
    found: dict[Number, list[int]] = defaultdict(list)
    for at, n in enumerate(numbers):
        found[n].append(at)
    return found


def _together(generations: Iterable[GenerationRow], positions: Mapping[Number, Sequence[int]]) -> list[int]:
    """Return the positions of the rows of these generations, in order."""
    return sorted(at for g in generations for at in positions.get(number(g), ()))


def _open_after(row: Any, end_ms: int, ends: str, names: tuple[str, ...]) -> Any:
    """Return the row; if it ends at `end_ms` or later, a copy without its end."""
    return {**row, **dict.fromkeys(names)} if row[ends] is not None and row[ends] >= end_ms else row
