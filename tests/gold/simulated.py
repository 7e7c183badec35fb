"""Simulated groups as silver rows, complete enough for tables."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from pipelines.arrow_types import stored
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, GROUPS, STALLS
from schemas.tables import Table
from testing.simulation.simulated_group import Instance, Simulated
from tests.whole_rows import whole

START = 1_780_000_000_000
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
CLUSTER = "kafka"


def group(name: str = "orders", kind: str = "eager", size: int = 4, **more: Any) -> Simulated:
    """A group that has run since an hour before START."""
    rng = Random(name)
    given = more.pop("instance", {})
    instances = [Instance(name=f"{name}-{index}", host=f"/10.0.0.{index}", **given) for index in range(size)]
    found = Simulated(group_id=name, kind=kind, rng=rng, instances=instances, with_members=True, **more)
    for index in range(size):
        found.do(START - HOUR + index * SECOND, "start", index)
    return found


def tables(groups: list[Simulated], *, since: int = 0, until: int = 1 << 60) -> dict[Table, pa.Table]:
    """Rows of silver that are known by `until` and were not by `since`."""
    rows: dict[Table, list[dict[str, Any]]] = {t: [] for t in (GENERATIONS, GROUP_EVENTS, GENERATION_MEMBERS, STALLS)}
    for found in groups:
        generations, events = found.rows()
        known = {g["generation_id"]: g["joined_at"] for g in generations}
        rows[GENERATIONS] += [g for g in generations if since <= g["joined_at"] < until]
        rows[GENERATION_MEMBERS] += [m for m in found.members if since <= m["valid_from_at"] < until]
        rows[GROUP_EVENTS] += [
            e for e in events if since <= max(e["event_at"], known.get(e["generation_id"], 0)) < until
        ]
    return {table: table_of(table, mine) for table, mine in rows.items()}


def table_of(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    return stored([whole(row | {"cluster": CLUSTER}, table) for row in rows], table)


def groups_table(groups: list[Simulated], until: int) -> pa.Table:
    rows = [{"group_id": g.group_id, "first_seen_at": START - HOUR, "last_record_at": until} for g in groups]
    return table_of(GROUPS, rows)
