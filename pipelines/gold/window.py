"""A group's silver rows as they were known at the end of a window."""

from __future__ import annotations

from typing import Any

from pipelines.gold.memberships import Silver, number


def window(silver: Silver, start_ms: int, end_ms: int) -> Silver:
    """Return the rows of the window [start_ms, end_ms), in milliseconds.

    These are the generations that joined in the window, with their members, stalls and events, and the previous
    generation as the initial state. Memberships and stalls that end later are returned as open.
    """
    generations = sorted(silver["generations"], key=number)
    before = [g for g in generations if g["joined_at"] < start_ms]
    chosen = before[-1:] + [g for g in generations if start_ms <= g["joined_at"] < end_ms]
    kept = {number(g) for g in chosen}
    return {
        "generations": chosen,
        "generation_members": [
            _without(row, end_ms, "valid_to_at", ("valid_to_at",))
            for row in silver["generation_members"]
            if number(row) in kept and row["valid_from_at"] < end_ms
        ],
        "stalls": [
            _without(row, end_ms, "resumed_at_earliest", OPEN)
            for row in silver["stalls"]
            if (row["incarnation"], row["generation_id"]) in kept and start_ms <= row["stopped_at_latest"] < end_ms
        ],
        "group_events": [row for row in silver["group_events"] if start_ms <= row["event_at"] < end_ms],
    }


OPEN = (
    "resumed_at_earliest",
    "resumed_at_latest",
    "resumed_generation_id",
    "to_member_id",
    "stopped_ms_min",
    "stopped_ms",
    "stopped_ms_max",
)


def _without(row: Any, end_ms: int, ends: str, names: tuple[str, ...]) -> Any:
    return {**row, **dict.fromkeys(names)} if row[ends] is not None and row[ends] >= end_ms else dict(row)
