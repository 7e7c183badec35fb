"""The queries of the pages on silver. All SQL of the pages is in this package.

Ids are always bound parameters.

Timestamps are epoch milliseconds in and out. A missing table gives no rows. *Lost* sums the stalls that ended and whose
cause is not `no_member`. A stall belongs to the range that contains `stopped_at_latest`, when it was known to have
stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.lake.file_index import ALWAYS
from dashboards.lake.lake import LakeError, Parameter, Row, Rows, moment
from dashboards.queries.diagnosis_queries import DIAGNOSIS_ROWS, NEWEST, OF_WINDOW
from dashboards.queries.fleet_queries import CELLS, FLEET, FLEET_WITH_DURATIONS, LOST_CELLS, TOTALS
from dashboards.queries.gold_store import DAY_MS, of_window, window_parameters
from dashboards.queries.group_queries import (
    ADJACENT,
    AFTER,
    BEFORE,
    BY_HASH,
    EPISODE,
    EVENTS,
    GAPS,
    GENERATION_EVENTS,
    GENERATION_MEMBERS,
    GENERATION_STALLS,
    GENERATIONS,
    GROUP,
    HAS_GAPS,
    LIBRARIES,
    LIBRARY_ROWS,
    LINE_ROWS,
    LINES,
    MEMBERS,
    MEMBERS_AT,
    NEIGHBOURS,
    STALLS,
)
from dashboards.queries.lag_store import LagStore
from dashboards.queries.move_queries import MET, MOVE_ROWS, MOVE_SAMPLES, MOVES, PROGRESS
from dashboards.queries.pattern_queries import LASTING, LASTING_ROWS, OF_GROUP, PATTERN_ROWS
from dashboards.urlstate import Window
from schemas.states import StallCause

CLUSTERS = 1_000
FLEET_ROWS = 500
GENERATION_ROWS = 500
MEMBER_ROWS = 20_000
STALL_ROWS = 5_000
EVENT_ROWS = 2_000
CELL_ROWS = 20_000
ORDERS = ("group", "cluster", "state", "rebalances", "lost", "p95", "changed")
"""Columns by which the fleet can be sorted."""

SPAN = """
SELECT cluster, min(first_seen_at) AS first_at, max(last_record_at) AS last_at, count(*) AS groups,
       count(*) FILTER (WHERE open_rebalance_since_at IS NOT NULL OR state IN
           ('PreparingRebalance', 'CompletingRebalance', 'Assigning', 'Reconciling')) AS rebalancing,
       count(*) FILTER (WHERE state = 'Unknown') AS unknown
FROM groups GROUP BY cluster LIMIT $cap
"""

COVERED = """
SELECT cluster, max(to_at) AS last_at FROM coverage WHERE NOT is_gap AND source <> 'poll' GROUP BY cluster LIMIT $cap
"""

TOTAL = ("rebalances", "lost", "lost_min", "lost_max", "lost_low", "lost_high")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSpan:
    """The time span and groups in the tables.

    `last_at` is the newest known record, and `until` the newest of each cluster. Nothing is known of a cluster after
    its own newest record. `rebalancing` counts the groups of each cluster that were rebalancing then.
    """

    first_at: int
    last_at: int
    until: Mapping[str, int]
    groups: int
    rebalancing: Mapping[str, int]
    unknown: int

    @property
    def whole(self) -> Window:
        """Return the range with everything that is known."""
        return Window(self.first_at, self.last_at + 1, is_live=False)

    def reaches(self, window: Window) -> bool:
        """Return whether anything is known of the window. If not, it may have had rebalances that no table has."""
        return self.first_at < window.end and self.last_at >= window.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Filter and order of the fleet's groups. `order` is one of ORDERS; '' means worst first."""

    skip: int = 0
    rows: int
    order: str = ""
    is_descending: bool = True
    named: str = ""
    least_rebalances: float = 0
    least_lost: float = 0

    def parameters(self) -> dict[str, Parameter]:
        return {
            "skip": self.skip,
            "order": self.order,
            "sign": -1 if self.is_descending else 1,
            "named": self.named,
            "least_rebalances": self.least_rebalances,
            "least_lost": self.least_lost,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One generation and its context. `previous` and `following` are None at the ends of an incarnation."""

    generation: Row
    previous: Row | None
    following: Row | None
    members: list[Row]
    previous_members: list[Row]
    stalls: Rows
    events: list[Row]
    episode: Row | None

    @property
    def everybody(self) -> list[Row]:
        """Return the members before the rebalance, then those after it."""
        return [*self.previous_members, *self.members]

    @property
    def named(self) -> list[Row]:
        """Return every row that names a member."""
        return [*self.everybody, *self.events]

    @property
    def stopped(self) -> list[Row]:
        """Return the stalls that this rebalance caused, without stalls of static members that rejoined later."""
        return [s for s in self.stalls.rows if not self._is_later(s)]

    @property
    def restarted(self) -> list[Row]:
        """Return the stalls of static members that rejoined during the generation; no rebalance caused them."""
        return [s for s in self.stalls.rows if self._is_later(s)]

    def _is_later(self, stall: Row) -> bool:
        by_other = stall["stopped_by_offset"] != self.generation["source_offset"]
        return by_other and bool(stall["cause"] == StallCause.STATIC_RESTART)


class Store(LagStore):
    """The queries on one warehouse."""

    def span(self, cluster: str = "") -> KnownSpan | None:
        """Return the span of one cluster or of all; None if nothing has been observed."""
        of = [row for row in self._ask(SPAN, ("groups",), CLUSTERS) if cluster in ("", row["cluster"])]
        rows = [row for row in of if row["first_at"] is not None and row["last_at"] is not None]
        if not rows:
            return None
        until: dict[str, int] = {row["cluster"]: row["last_at"] for row in rows}
        for row in self._ask(COVERED, ("coverage",), CLUSTERS):
            if row["cluster"] in until and row["last_at"] is not None:
                until[row["cluster"]] = max(until[row["cluster"]], row["last_at"])
        counts = {name: sum(row[name] for row in of) for name in ("groups", "unknown")}
        return KnownSpan(
            first_at=min(row["first_at"] for row in rows),
            last_at=max(until.values()),
            until=until,
            rebalancing={row["cluster"]: row["rebalancing"] for row in of},
            **counts,
        )

    def totals(self, window: Window) -> Row:
        """Return `rebalances` of all groups and their `lost` (resource-seconds): the estimate, hard bounds (`_min`,
        `_max`) and a 90 % interval (`_low`, `_high`).
        """
        rows = self._ask(TOTALS, ("group_losses", "group_rebalances"), 1, **window_parameters(window))
        return rows[0] if rows else dict.fromkeys(TOTAL, 0)

    def fleet(self, window: Window, q: str = "", wanted: Wanted | None = None, *, has_durations: bool = False) -> Rows:
        """Return groups whose id contains `q`, filtered and ordered by `wanted`.

        By default, groups that are rebalancing come first, then the groups that lost most. In each row, `total` is the
        number of groups, and the columns `all_…` are `totals`. With `has_durations`, it also has the 95th percentile of
        the group's rebalances (`p95_min`, `p95_max`, in ms), for which all generations of the window are read.
        """
        wanted = wanted or Wanted(rows=FLEET_ROWS)
        parameters: dict[str, Parameter] = {"q": q, **wanted.parameters(), **window_parameters(window)}
        tables = dict.fromkeys(("groups", "group_losses", "group_rebalances"), ALWAYS)
        if has_durations:
            tables |= of_window(window, "generations")
        sql = FLEET_WITH_DURATIONS if has_durations else FLEET
        return self._lake.query(sql, tables, wanted.rows, parameters)

    def cells(self, window: Window, bins: int, groups: Sequence[tuple[str, str]]) -> list[Row]:
        """Return rebalances per group and bin: `cluster`, `group_id`, `bin`, `rebalances`, and `lost` resource-seconds.

        `lost` is None if one of the rebalances is not analyzed yet.
        """
        parameters: dict[str, Parameter] = {
            "start_ms": window.start,
            "bin_ms": max(1, -(-window.width // bins)),
            "groups": [cluster + "\n" + group for cluster, group in groups],
            **window_parameters(window),
        }
        judged = {
            (row["cluster"], row["group_id"], row["bin"]): row
            for row in self._ask(LOST_CELLS, of_window(window, "verdicts"), CELL_ROWS, **parameters)
        }
        cells = self._ask(CELLS, of_window(window, "generations"), CELL_ROWS, **parameters)
        return [cell | {"lost": _lost_in(cell, judged)} for cell in cells]

    def reassignments(self, window: Window) -> Rows:
        """Return the reassignments in progress in the window, unfinished ones first.

        `groups` and `rebalances` refer to generations that began during the reassignment, of groups that consume the
        topic or whose coordinator is the partition.
        """
        found = self._lake.query(MOVES, ("reassignments",), MOVE_ROWS, window_parameters(window))
        met: dict[tuple[Any, ...], Row] = {}
        if found.rows:
            limits = {
                "since": moment(min(row["started_at"] for row in found.rows)),
                "until": moment(max(row["until_at"] for row in found.rows) + 1),
            }
            tables = ("reassignments", "generations", "generation_members")
            asked = self._lake.query(MET, tables, MOVE_ROWS, {**window_parameters(window), **limits})
            met = {_move(row): row for row in asked.rows}
        nobody: Row = {"groups": [], "rebalances": 0}
        return Rows([nobody | row | met.get(_move(row), {}) for row in found.rows], found.is_capped)

    def progress(self, window: Window) -> Rows:
        """Return polls of the window's reassignments: `observed_at`, `progress` 0..1, bytes; newest first."""
        return self._lake.query(
            PROGRESS, ("reassignments", "reassignment_samples"), MOVE_SAMPLES, window_parameters(window)
        )

    def group(self, cluster: str, group: str) -> Row | None:
        rows = self._ask(GROUP, ("groups",), 1, cluster=cluster, group=group)
        return rows[0] if rows else None

    def group_by_hash(self, cluster: str, gid: str) -> str | None:
        """Return the group id of a `urlstate.group_hash`; None if no group has it."""
        rows = self._ask(BY_HASH, ("groups",), 1, cluster=cluster, gid=gid)
        return rows[0]["group_id"] if rows else None

    def generations(self, cluster: str, group: str, window: Window) -> Rows:
        """Return the generations of the window and the one before it, newest first, each with its cost.

        Each row has the number of generations of the window, also if not all rows are returned (`window_generations`).
        """
        before, after = self._before(cluster, group, window.start), self._after(cluster, group, window.end)
        since = window.start if before is None else before
        # The first generation after the window may have begun within it; later ones cannot have.
        until = window.end if after is None else after + 1
        # Stalls caused by a generation cannot have ended before it began.
        of = {"generations": (moment(since), moment(until)), "stalls": (moment(since - DAY_MS), None)}
        key: dict[str, Parameter] = {"cluster": cluster, "group": group}
        limits = {"since": moment(since), "until": moment(until), **window_parameters(window)}
        return self._lake.query(GENERATIONS, of, GENERATION_ROWS, {**key, **limits})

    def _before(self, cluster: str, group: str, start: int) -> int | None:
        """Return when the group's last generation before `start` joined. Reads the last two days first, then all."""
        for days in (2, 10_000):
            since = moment(max(0, start - days * DAY_MS))
            key: dict[str, Parameter] = {"cluster": cluster, "group": group, "start": moment(start), "since": since}
            found = self._lake.query(BEFORE, {"generations": (since, moment(start))}, 1, key).rows
            if found and found[0]["at"] is not None:
                return int(found[0]["at"])
        return None

    def _after(self, cluster: str, group: str, end: int) -> int | None:
        key: dict[str, Parameter] = {"cluster": cluster, "group": group, "end": moment(end)}
        found = self._lake.query(AFTER, {"generations": (moment(end), None)}, 1, key).rows
        return int(found[0]["at"]) if found and found[0]["at"] is not None else None

    def members(self, cluster: str, group: str, window: Window) -> Rows:
        return self._of_group(MEMBERS, ("generation_members",), MEMBER_ROWS, cluster, group, window)

    def members_at(self, cluster: str, group: str, at: int) -> list[Row]:
        """Return the members of the group at a time in milliseconds, with all columns."""
        now = Window(at, at + 1, is_live=False)
        return self._of_group(MEMBERS_AT, ("generation_members",), MEMBER_ROWS, cluster, group, now).rows

    def libraries(self, cluster: str, group: str, window: Window) -> list[Row]:
        """Return the client libraries of the group's members; empty for a table that an earlier Regroup wrote."""
        try:
            return self._of_group(LIBRARIES, ("generation_members",), LIBRARY_ROWS, cluster, group, window).rows
        except LakeError:
            # The page's other queries report what is wrong with the table.
            return []

    def stalls(self, cluster: str, group: str, window: Window) -> Rows:
        return self._of_group(STALLS, ("stalls",), STALL_ROWS, cluster, group, window)

    def events(self, cluster: str, group: str, window: Window) -> Rows:
        return self._of_group(EVENTS, ("group_events",), EVENT_ROWS, cluster, group, window)

    def diagnoses(self, q: str = "", groups: Sequence[str] = ()) -> Rows:
        """Return the newest diagnoses of groups whose id contains `q`, or only of `groups` if any are given."""
        return self._lake.query(NEWEST, ("diagnoses",), DIAGNOSIS_ROWS, {"q": q, "groups": list(groups)})

    def diagnosis(self, cluster: str, group: str, window: Window) -> list[Row]:
        """Return the diagnoses of the last day in the window on which the group rebalanced."""
        return self._of_group(OF_WINDOW, ("diagnoses",), DIAGNOSIS_ROWS, cluster, group, window).rows

    def patterns(self, cluster: str, group: str, window: Window) -> list[Row]:
        """Return the patterns that the last analysis in the window or before it found."""
        parameters: dict[str, Parameter] = {"cluster": cluster, "group": group, **window_parameters(window)}
        return self._lake.query(OF_GROUP, ("patterns", "diagnoses"), PATTERN_ROWS, parameters).rows

    def lasting_patterns(self, window: Window, q: str) -> list[Row]:
        """Return patterns without an end in the data, of groups whose id contains `q`."""
        parameters: dict[str, Parameter] = {"q": q, **window_parameters(window)}
        return self._lake.query(LASTING, ("patterns", "diagnoses"), LASTING_ROWS, parameters).rows

    def gaps(self, cluster: str, group: str, window: Window) -> Rows:
        """Return unread spans of the group's partition of the offsets topic: `from_at`, `to_at`, `gap_reason`."""
        if not self._ask(HAS_GAPS, ("coverage",), 1, cluster=cluster):
            return Rows([], is_capped=False)
        parameters: dict[str, Parameter] = {"cluster": cluster, "group": group, **window_parameters(window)}
        return self._lake.query(GAPS, ("coverage", "generations"), EVENT_ROWS, parameters)

    def lines(self, cluster: str, group: str, window: Window) -> Rows:
        """Return log lines about a group, the newest first."""
        return self._of_group(LINES, ("coordinator_events",), LINE_ROWS, cluster, group, window)

    def rebalance(self, cluster: str, group: str, incarnation: int, generation: int) -> Rebalance | None:
        """Return the row of a generation with its context; None if there is no such generation."""
        key: dict[str, Parameter] = {
            "cluster": cluster,
            "group": group,
            "incarnation": incarnation,
            "generation": generation,
        }
        adjacent = self._ask(ADJACENT, ("generations",), 1, **key)
        if not adjacent:
            return None
        generation = adjacent[0]["generation"]
        key |= {name: generation if row is None else row for name, row in adjacent[0].items()}
        near = self._ask(NEIGHBOURS, ("generations",), 3, **key)
        at = next((i for i, row in enumerate(near) if row["generation_id"] == generation), None)
        if at is None:
            return None
        previous = near[at - 1] if at else None
        last = near[at + 1]["joined_at"] + DAY_MS if at + 1 < len(near) else None
        # All rows of this generation and the one before it lie in this range; the margin is one day.
        lived = (moment(near[max(0, at - 1)]["joined_at"] - DAY_MS), None if last is None else moment(last))

        def rows(sql: str, table: str, cap: int) -> Rows:
            return self._lake.query(sql, {table: lived}, cap, key)

        members = rows(GENERATION_MEMBERS, "generation_members", MEMBER_ROWS).rows
        return Rebalance(
            generation=near[at],
            previous=previous,
            following=near[at + 1] if at + 1 < len(near) else None,
            members=[m for m in members if m["generation_id"] == generation],
            previous_members=[m for m in members if m["generation_id"] != generation],
            stalls=rows(GENERATION_STALLS, "stalls", STALL_ROWS),
            events=rows(GENERATION_EVENTS, "group_events", EVENT_ROWS).rows,
            episode=next(iter(rows(EPISODE, "rebalances", 1).rows), None),
        )

    def _of_group(self, sql: str, tables: Sequence[str], cap: int, cluster: str, group: str, window: Window) -> Rows:
        """Return the rows that overlap the window."""
        limits = window_parameters(window)
        return self._lake.query(sql, of_window(window, *tables), cap, {"cluster": cluster, "group": group, **limits})


def _move(row: Row) -> tuple[Any, ...]:
    return row["cluster"], row["topic"], row["partition"], row["started_at"]


def _lost_in(cell: Row, judged: Mapping[tuple[Any, ...], Row]) -> float | None:
    """Return the loss of a cell's rebalances; None unless all that completed are analyzed."""
    found = judged.get((cell["cluster"], cell["group_id"], cell["bin"]))
    lost = 0.0 if found is None else float(found["lost"])
    return lost if (0 if found is None else found["judged"]) >= cell["completed"] else None
