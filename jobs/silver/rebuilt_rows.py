"""Rows of silver that the last rebuild of each group made, cached between batches.

They are what the next rebuild of the group replaces. In a storm, each batch would otherwise read the rows of some
groups from files that also hold those of all others. The rows belong to one version of a table. After a commit by
anyone else that may change rows, they are read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.tables.as_of import opened_version
from jobs.tables.engine import connect
from jobs.tables.since_points import since_points
from jobs.tables.table_facts import follows
from pipelines.silver.resume_points import GROUP, after_base
from schemas.silver import GROUPS, SILVER
from schemas.tables import Table

BYTES = 48_000_000
"""Highest number of bytes of cached rows. A thousand groups in a storm have half of them."""

CACHED = tuple(table for table in SILVER if table is not GROUPS)
"""`groups` has one row per group, which commits change without a rebuild."""

REBUILD = "rebuild"
"""Column with the number of the rebuild that made a row."""

ROW = "row"
"""Column with the number of a row."""

POSITIONS = (
    ("base_log_epoch", "base_offset"),
    ("log_epoch", "source_offset"),
    ("incarnation", "first_generation_id"),
    ("base_at",),
)
"""Columns of a point that `after_base` compares with rows."""

_known: dict[Path, RebuiltRows] = {}


def rebuilt_rows(warehouse: Path) -> RebuiltRows:
    """Return the cache of a warehouse in local mode. Only that of one warehouse is kept."""
    if warehouse not in _known:
        _known.clear()
        _known[warehouse] = RebuiltRows(warehouse=warehouse)
    return _known[warehouse]


@dataclass(frozen=True, slots=True)
class _Base:
    """Where the rows of a rebuild begin: the point's positions, None for the first record of the group, and its kind.

    The kind is whether the coordinator assigns there. `after_base` compares other columns then.
    """

    positions: tuple[tuple[Any, ...], ...] | None
    is_assigned: bool

    @classmethod
    def of(cls, point: Mapping[str, Any]) -> _Base:
        if point["base_offset"] is None:
            return cls(None, is_assigned=False)
        positions = tuple(tuple(point[name] for name in names) for names in POSITIONS)
        return cls(positions, is_assigned=point["base_state"] is not None)

    def includes(self, later: _Base) -> bool:
        """Return whether all rows after `later` are certainly after this base."""
        if self.positions is None or later.positions is None:
            return self.positions is None
        if self.is_assigned != later.is_assigned or any(None in position for position in self.positions):
            return False
        return all(mine <= its for mine, its in zip(self.positions, later.positions, strict=True))


@dataclass(frozen=True, slots=True)
class _Rebuild:
    """The rows of one rebuild by table, without tables of which they may have changed since, and their bytes."""

    rows: dict[Table, pa.Table]
    bytes: int


@dataclass(slots=True, kw_only=True)
class RebuiltRows:
    """The cache of one warehouse."""

    warehouse: Path
    _groups: dict[tuple[str, str], tuple[_Base, int]] = field(default_factory=dict)
    _rebuilds: dict[int, _Rebuild] = field(default_factory=dict)
    _versions: dict[Table, tuple[str, int]] = field(default_factory=dict)
    _last: int = 0

    def since(self, table: Table, points: pa.Table) -> pa.Table:
        """Return the stored rows of the table that are after the base of their group's point (`after_base`)."""
        if table not in CACHED:
            return since_points(self.warehouse, table, points, after_base(table))
        self._check_version(table, 0)
        known = points.append_column(REBUILD, pa.array((self._made(table, at) for at in _bases(points)), pa.int64()))
        cached, rest = known.filter(known[REBUILD].is_valid()), known.filter(known[REBUILD].is_null())
        found = since_points(self.warehouse, table, rest.select(points.column_names), after_base(table))
        return pa.concat_tables([found, self._of(table, cached)]) if cached.num_rows else found

    def remember(self, points: pa.Table, made: Mapping[Table, pa.Table], changed: Mapping[Table, int]) -> None:
        """Keep the rows `made` from `points`, which are stored now.

        `changed` has the number of rows that were written, in at most one commit per table. `since` was called for each
        table before.
        """
        current = [table for table in made if table in CACHED and self._check_version(table, min(changed[table], 1))]
        rows = {table: made[table] for table in current}
        self._last += 1
        self._rebuilds[self._last] = _Rebuild(rows, sum(each.nbytes for each in rows.values()))
        self._groups.update((group, (base, self._last)) for group, base in _bases(points))
        self._remove({*self._rebuilds} - {number for _, number in self._groups.values()})
        while sum(rebuild.bytes for rebuild in self._rebuilds.values()) > BYTES:
            self._remove({min(self._rebuilds)})

    def _made(self, table: Table, at: tuple[tuple[str, str], _Base]) -> int | None:
        """Return the number of the rebuild that made all rows of a group after a base; None if they must be read."""
        group, base = at
        if group not in self._groups:
            return None
        first, number = self._groups[group]
        return number if table in self._rebuilds[number].rows and first.includes(base) else None

    def _of(self, table: Table, points: pa.Table) -> pa.Table:
        """Return the cached rows after these points, which have the numbers of rebuilds."""
        rows = {number: self._rebuilds[number].rows[table] for number in set(points[REBUILD].to_pylist())}
        made, condition = pa.concat_tables(rows.values()), after_base(table)
        # DuckDB plans for longer the more columns there are.
        names = [name for name in table.names if name in GROUP or f"old.{name}" in condition]
        compared = pa.concat_tables(
            found.select(names).append_column(REBUILD, pa.repeat(number, found.num_rows))
            for number, found in rows.items()
        ).append_column(ROW, pa.array(range(made.num_rows), pa.int64()))
        same = " AND ".join(f"old.{name} = point.{name}" for name in (*GROUP, REBUILD))
        with connect() as engine:
            engine.register("made", compared)
            engine.register("points", points)
            found = engine.sql(f"SELECT {ROW} FROM made old JOIN points point ON {same} WHERE {condition}")  # noqa: S608 - our own names
            return made.take(found.to_arrow_table()[ROW])

    def _check_version(self, table: Table, commits: int) -> bool:
        """Return whether only that many commits have changed rows since the last check; if not, forget the rows."""
        (known, before), (table_id, now) = self._versions.get(table, ("", -1)), opened_version(self.warehouse, table)
        self._versions[table] = table_id, now
        if known == table_id and follows(self.warehouse, table, before, now, commits=commits):
            return True
        for rebuild in self._rebuilds.values():
            rebuild.rows.pop(table, None)
        return False

    def _remove(self, numbers: set[int]) -> None:
        self._rebuilds = {number: rebuild for number, rebuild in self._rebuilds.items() if number not in numbers}
        self._groups = {group: known for group, known in self._groups.items() if known[1] not in numbers}


def _bases(points: pa.Table) -> list[tuple[tuple[str, str], _Base]]:
    columns = [*GROUP, "base_state", *(name for names in POSITIONS for name in names)]
    return [((row["cluster"], row["group_id"]), _Base.of(row)) for row in points.select(columns).to_pylist()]
