"""Which stops are over, but for a first commit: remembered from batch to batch, since each batch asks.

Without it every batch would look through all of `stalls` for the groups that only committed. What is remembered is
that of one version of the table; when it is another one, whoever wrote it, everything is asked anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from jobs.tables.as_of import opened
from jobs.tables.delta_io import actions, table_path
from jobs.tables.engine import connect, quoted, show
from jobs.tables.since_points import since_points
from pipelines.arrow_types import row_type
from pipelines.silver import resume_points
from schemas.silver import STALLS

GROUP = list(resume_points.GROUP)
RESOURCE = (*GROUP, "name", "index")
NEEDED = (
    *RESOURCE, "log_epoch", "stopped_by_offset", "resumed_at_latest", "first_commit_at", "incarnation",
    "resumed_generation_id",
)  # fmt: skip
"""What `restarts.committing` reads of a stall."""

KIND = pa.schema([column for column in row_type(STALLS) if column.name in NEEDED])
GROUPS = pa.schema([KIND.field(name) for name in GROUP])

LAST = f"""
SELECT {quoted(KIND.names)} FROM (
    SELECT *, rank() OVER (PARTITION BY {quoted(RESOURCE)} ORDER BY log_epoch DESC, stopped_by_offset DESC) AS nth
    FROM {{rows}}
) WHERE nth = 1 AND resumed_at_latest IS NOT NULL AND first_commit_at IS NULL
"""  # noqa: S608 - our own names
"""Of each resource the last stop, where it is over and no commit of it was seen since."""

_known: dict[str, PendingFirstCommits] = {}
"""By the path of `stalls`."""


def pending_first_commits(warehouse: Path, groups: pa.Table) -> pa.Table:
    """The rows of `stalls` that wait for a first commit, of these groups (cluster, group_id) at least.

    Of each resource it is its last stop, if that waits. Of a classic group those are left out, at times, that not its
    newest generation ended.
    """
    path, stored = table_path(warehouse, STALLS), opened(warehouse, STALLS)
    known, table_id = _known.get(path), str(stored.metadata().id)
    if known is None or known.table_id != table_id or not known.stands(path, stored.version()):
        known = _known[path] = PendingFirstCommits(table_id=table_id, version=stored.version())
    known.learn(warehouse, groups.select(GROUP))
    return known.rows


def rebuilt(warehouse: Path, points: pa.Table, classic: pa.Table, changed: int) -> None:
    """Tell that `changed` rows of `stalls` were written as groups were rebuilt from `points` (`restarts.restarts`), of
    which those in `classic` (cluster, group_id) are classic ones.
    """
    path = table_path(warehouse, STALLS)
    if (known := _known.get(path)) is None:
        return
    if opened(warehouse, STALLS).version() == known.version + (1 if changed else 0):
        known.version += 1 if changed else 0
        known.forget(points, classic)
    else:
        # Somebody else wrote as well.
        del _known[path]


@dataclass(slots=True, kw_only=True)
class PendingFirstCommits:
    """What one version of the table told: `rows` of the `groups`; `points` from where on of others is enough."""

    table_id: str
    version: int
    groups: pa.Table = field(default_factory=GROUPS.empty_table)
    rows: pa.Table = field(default_factory=KIND.empty_table)
    points: pa.Table | None = None

    def stands(self, path: str, version: int) -> bool:
        """Whether that version has the rows of the one that is known, in other files; it is known then."""
        if version < self.version or not all(_is_same(path, n) for n in range(self.version + 1, version + 1)):
            return False
        self.version = version
        return True

    def learn(self, warehouse: Path, groups: pa.Table) -> None:
        """Ask of those groups that are not known."""
        new = _without(groups, self.groups).cast(GROUPS)
        if not new.num_rows:
            return
        found = [self.rows]
        rest = new
        if self.points is not None:
            points, rest = self.points.join(new, GROUP, join_type="left semi"), _without(new, self.points)
            found.append(_last("late", late=since_points(warehouse, STALLS, points, resume_points.after_base(STALLS))))
            self.points = _without(self.points, new)
        if rest.num_rows:
            found.append(_last(f"stalls SEMI JOIN rest USING ({quoted(GROUP)})", warehouse, rest=rest))
        self.rows = pa.concat_tables(found)
        self.groups = pa.concat_tables([self.groups, new])

    def forget(self, points: pa.Table, classic: pa.Table) -> None:
        """Groups that were rebuilt from `points`. Stops that a classic one's newest generation ended are after it."""
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


def _is_same(path: str, version: int) -> bool:
    """Whether the commit only put files together."""
    told = actions(path, version)
    files = (action.get("add") or action.get("remove") for action in told or ())
    return told is not None and all(file is None or not file["dataChange"] for file in files)
