"""Reads rows of a table from given points of their groups' histories on, with DuckDB."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from jobs.tables.engine import connect, show
from jobs.tables.silver_rows import milliseconds_of
from pipelines.arrow_types import row_type
from pipelines.silver.frame import UNUSED
from schemas.silver import REBALANCES, STALLS
from schemas.tables import Table

ASTRAY_MS = 600_000
"""Highest difference between two brokers' clocks, in ms. A row that was written after a record may have an earlier
timestamp, but by no more than this.
"""


CARRIED_ON = (STALLS, REBALANCES)
"""Tables of which a rebuild may change rows from before its base (`pipelines.silver.carrying.points`)."""


def since_points(
    warehouse: Path, table: Table, points: pa.Table, condition: str, *, most: int | None = None
) -> pa.Table:
    """Return rows `old` of the table that fulfil `condition` for their group's `point` (`from_base`, `after_base`).

    With `most`, reading stops after `most` + 1 rows of each kind of group. Columns that `UNUSED` names are left out.
    For groups with a base, files with only older rows are not opened. Unfinished stalls and episodes are older than the
    base.
    """
    tail = f"WHERE {condition}" + (f" LIMIT {most + 1}" if most is not None else "")
    has_base = pc.is_valid(points["base_at"])
    parts = [of_groups(warehouse, table, points.filter(pc.invert(has_base)), tail)]
    if (based := points.filter(has_base)).num_rows:
        parts.append(of_groups(warehouse, table, based, tail, since=since_earliest(table, based)))
    return pa.concat_tables(parts)


def since_earliest(table: Table, points: pa.Table) -> tuple[str, int] | None:
    """Return the earliest time of the rows that a rebuild from these points reads or replaces, as column and ms.

    None if it is unknown: a group has no base, or the table no time.
    """
    if not points.num_rows or points["base_at"].null_count or not table.time:
        return None
    begun = points["base_at"]
    if table in CARRIED_ON and "unfinished_since_at" in points.column_names:
        begun = pc.coalesce(points["unfinished_since_at"], begun)
    return table.time, milliseconds_of(pc.min(begun)) - ASTRAY_MS


def of_groups(
    warehouse: Path, table: Table, points: pa.Table, tail: str = "", *, since: tuple[str, int] | None = None
) -> pa.Table:
    """Return rows `old` of the table whose groups are in `points` (alias `point`), restricted by the SQL `tail`."""
    kind = pa.schema([field for field in row_type(table) if field.name not in UNUSED])
    if not points.num_rows:
        return kind.empty_table()
    columns = ", ".join(f'old."{name}"' for name in kind.names)
    with connect() as engine:
        show(engine, "stored", warehouse, table, since=since, groups=points)
        engine.register("points", points)
        found = engine.sql(
            f"SELECT {columns} FROM stored old JOIN points point "  # noqa: S608 - our own names
            f"ON old.cluster = point.cluster AND old.group_id = point.group_id {tail}"
        ).to_arrow_table()
    found = found.cast(kind)
    # Spark cannot read a column without chunks.
    return found if found.num_rows else kind.empty_table()
