"""Stalls that are over but still lack a first commit, cached between batches, because each batch needs them.

Without the cache, every batch would scan all of `stalls` for groups that only committed. The cache belongs to one
version of the table. After a commit by anyone else, everything is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from jobs.silver.rebuilt_rows import rebuilt_rows
from jobs.tables.as_of import opened_version
from jobs.tables.engine import connect, quoted, show
from jobs.tables.table_facts import follows
from pipelines.arrow_types import row_type
from pipelines.silver import resume_points
from schemas.silver import STALLS

GROUP = list(resume_points.GROUP)
RESOURCE = (*GROUP, "name", "index")
NEEDED = (
    *RESOURCE, "log_epoch", "stopped_by_offset", "resumed_at_latest", "first_commit_at", "incarnation",
    "resumed_generation_id",
)  # fmt: skip
"""The columns of a stall that `resume_points.committing` reads."""

KIND = pa.schema([column for column in row_type(STALLS) if column.name in NEEDED])
GROUPS = pa.schema([KIND.field(name) for name in GROUP])

LAST = f"""
SELECT {quoted(KIND.names)} FROM (
    SELECT *, rank() OVER (PARTITION BY {quoted(RESOURCE)} ORDER BY log_epoch DESC, stopped_by_offset DESC) AS nth
    FROM {{rows}}
) WHERE nth = 1 AND resumed_at_latest IS NOT NULL AND first_commit_at IS NULL
"""  # noqa: S608 - our own names
"""SQL for the last stall of each resource, if it is over and has no commit since."""

_known: dict[Path, PendingFirstCommits] = {}
"""Caches by warehouse."""


def pending_first_commits(warehouse: Path, groups: pa.Table) -> pa.Table:
    """Return the rows of `stalls` that wait for a first commit, of at least these groups (cluster, group_id).

    Only the last stall of a resource counts. For a classic group, stalls may be left out if they were not
    ended by its newest generation.
    """
    known, (table_id, version) = _known.get(warehouse), opened_version(warehouse, STALLS)
    if known is None or known.table_id != table_id or not known.is_current(warehouse, version):
        known = _known[warehouse] = PendingFirstCommits(table_id=table_id, version=version)
    known.learn(warehouse, groups.select(GROUP))
    return known.rows


def rebuilt(warehouse: Path, points: pa.Table, classic: pa.Table, changed: int) -> None:
    """Update the cache after groups were rebuilt from `points` (`resume_points.resume_points`).

    `changed` is the number of rows of `stalls` that were written. `classic` (cluster, group_id) are the classic groups.
    """
    if (known := _known.get(warehouse)) is None:
        return
    if opened_version(warehouse, STALLS)[1] == known.version + (1 if changed else 0):
        known.version += 1 if changed else 0
        known.forget(points, classic)
    else:
        # Another process wrote to the table as well.
        del _known[warehouse]


@dataclass(slots=True, kw_only=True)
class PendingFirstCommits:
    """The cache for one version of the table. `rows` are the stalls of `groups`.

    Groups in `points` are not cached, and must be read only from their point on.
    """

    table_id: str
    version: int
    groups: pa.Table = field(default_factory=GROUPS.empty_table)
    rows: pa.Table = field(default_factory=KIND.empty_table)
    points: pa.Table | None = None

    def is_current(self, warehouse: Path, version: int) -> bool:
        """Return whether `version` has the same rows in other files. If so, the cache continues with that version."""
        if not follows(warehouse, STALLS, self.version, version):
            return False
        self.version = version
        return True

    def learn(self, warehouse: Path, groups: pa.Table) -> None:
        """Read the groups that are not cached."""
        new = _without(groups, self.groups).cast(GROUPS)
        if not new.num_rows:
            return
        found = [self.rows]
        rest = new
        if self.points is not None:
            points, rest = self.points.join(new, GROUP, join_type="left semi"), _without(new, self.points)
            found.append(_last("late", late=rebuilt_rows(warehouse).since(STALLS, points)))
            self.points = _without(self.points, new)
        if rest.num_rows:
            found.append(_last(f"stalls SEMI JOIN rest USING ({quoted(GROUP)})", warehouse, rest=rest))
        self.rows = pa.concat_tables(found)
        self.groups = pa.concat_tables([self.groups, new])

    def forget(self, points: pa.Table, classic: pa.Table) -> None:
        """Remove groups that were rebuilt from `points`. Stalls that a classic group's newest generation ended are
        after it.
        """
        self.rows, self.groups = _without(self.rows, points), _without(self.groups, points)
        new = points.join(classic, GROUP, join_type="left semi")
        old = [] if self.points is None else [_without(self.points, points)]
        self.points = pa.concat_tables([*old, new])


def _last(rows: str, warehouse: Path | None = None, **given: pa.Table) -> pa.Table:
    with connect() as engine:
        if warehouse is not None:
            show(engine, STALLS.name, warehouse, STALLS)
        for name, table in given.items():
            engine.register(name, table)
        return engine.sql(LAST.format(rows=rows)).to_arrow_table().cast(KIND)


def _without(rows: pa.Table, groups: pa.Table) -> pa.Table:
    return rows.join(groups.select(GROUP), GROUP, join_type="left anti") if rows.num_rows else rows
