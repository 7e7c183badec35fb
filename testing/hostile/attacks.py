"""Attacks: hostile input by kind, with budgets for what the product makes from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from testing.hostile.cost import Attack, Made
from testing.hostile.hostile_lines import controller_lines, long_lines, marks, member_lines, rebalance_lines
from testing.hostile.hostile_records import commits, fresh_client_ids, fresh_instance_ids, one_client_id, static_ids
from testing.hostile.layers import of_lines, of_marks, of_polls, of_records


def _attack(
    name: str,
    write: Callable[[int], Any],
    *,
    kind: str,
    read: Callable[[Any], tuple[int, Callable[[], Made]]],
    n: int,
    budget: tuple[float, float, float],
) -> Attack:
    """Return an attack. `budget`: rows per kB, bytes per byte, seconds per MB."""
    rows, size, seconds = budget
    return Attack(
        name=name,
        kind=kind,
        n=n,
        make=lambda many: read(write(many)),
        rows_per_kb=rows,
        bytes_per_byte=size,
        seconds_per_mb=seconds,
    )


RECORDS: dict[str, Any] = {"kind": "records", "read": of_records}
LINES: dict[str, Any] = {"kind": "lines", "read": of_lines}
ATTACKS = (
    _attack("fresh client ids", fresh_client_ids, **RECORDS, n=300, budget=(60, 20, 90)),
    _attack("fresh instance ids", fresh_instance_ids, **RECORDS, n=300, budget=(60, 20, 90)),
    _attack("one client id", one_client_id, **RECORDS, n=200, budget=(45, 20, 400)),
    _attack("static restarts", static_ids, **RECORDS, n=200, budget=(20, 15, 200)),
    _attack("commits of many groups", commits, **RECORDS, n=2_000, budget=(70, 15, 10)),
    _attack("members that join and fail", member_lines, **LINES, n=1_000, budget=(6, 5, 3)),
    _attack("invented rebalances", rebalance_lines, **LINES, n=1_000, budget=(6, 5, 3)),
    _attack("long lines", long_lines, **LINES, n=200, budget=(2, 2, 3)),
    _attack("marks", marks, kind="marks", read=of_marks, n=2_000, budget=(40, 12, 10)),
    _attack("invented reassignments", controller_lines, kind="polls", read=of_polls, n=300, budget=(12, 8, 20)),
)
