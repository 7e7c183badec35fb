"""Losses by verdict and cause: over time, and by cluster, team and group. Rules: see `dashboards.queries.store`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboards.lake.file_index import ALWAYS, Between
from dashboards.lake.lake import Lake, Parameter, Row, Rows, moment
from dashboards.lake.sums import HASHED
from dashboards.queries.ahead import ahead
from dashboards.queries.cause_queries import KEYS, first_pending, fleet_verdicts, over_time, pending_sums, sums
from dashboards.queries.fleet_queries import fleet_sql, totals_sql
from dashboards.queries.gold_store import DAY_MS, GoldStore, of_window, window_parameters
from dashboards.queries.store import TOTAL, Wanted
from dashboards.teams import Teams
from dashboards.urlstate import Window
from schemas.written import NOTHING

SPLIT_ROWS = 500
SLOT_ROWS = 60_000
NO_LOSS: Row = {
    "lost": 0.0, "lost_min": 0.0, "lost_max": 0.0, "rebalances": 0, "observed": 0, "main_verdict": None,
    "main_cause": None, "lost_mostly": 0.0, "lost_before": 0.0, "rebalances_before": 0, "pending_lost": 0.0,
    "pending_rebalances": 0, "total": 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The limits of sums; an empty field is no limit. `team` is a name of the settings or `NO_TEAM`.

    `verdict` and `cause` limit the rebalances, the other fields the groups.
    """

    cluster: str = ""
    team: str = ""
    verdict: str = ""
    cause: str = ""
    teams: Teams = field(default_factory=Teams)

    @property
    def of_groups(self) -> str:
        """Return the condition on the columns `cluster` and `team`."""
        found = ["cluster = $of_cluster"] if self.cluster else []
        found += ["team = $of_team"] if self.team else []
        return " AND ".join(found) or "true"

    @property
    def of_rows(self) -> str:
        """Return the condition on rows with the columns `cluster` and `group_id`, where the CTE `named` is."""
        found = ["cluster = $of_cluster"] if self.cluster else []
        found += [f"{HASHED} IN (SELECT hashed FROM named)"] if self.team else []  # noqa: S608 - our own names
        return " AND ".join(found) or "true"

    @property
    def of_rows_of_groups(self) -> str:
        """Return the condition on rows of `groups`, without the CTE `named`."""
        found = ["cluster = $of_cluster"] if self.cluster else []
        found += [f"{self.label} = $of_team"] if self.team else []
        return " AND ".join(found) or "true"

    @property
    def of_verdicts(self) -> str:
        found = ["verdict = $of_verdict"] if self.verdict else []
        found += ["cause = $of_cause"] if self.cause else []
        return " AND ".join(found) or "true"

    @property
    def label(self) -> str:
        """Return the SQL of a group's team."""
        return self.teams.sql

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Return the query parameters. Raises `ValueError` if there is no such team."""
        given: dict[str, Parameter] = {"of_cluster": self.cluster, "of_verdict": self.verdict, "of_cause": self.cause}
        if self.team:
            given["of_team"] = self.teams.position(self.team)
        return given | self.teams.parameters


@dataclass(frozen=True, slots=True)
class Pending:
    """The completed rebalances without a verdict, and when the first of them joined."""

    rebalances: int
    first_at: int | None


class Causes:
    """The queries of one store, within a scope and a range."""

    def __init__(self, store: GoldStore, window: Window, scope: Scope | None = None) -> None:
        self._lake: Lake = store.lake
        self._window, self._scope = window, scope or Scope(teams=store.teams)
        self._has_verdicts = "verdicts" in store.versions()

    def totals(self) -> Row:
        """Return `Store.totals` of the scope's groups."""
        sql = totals_sql(self._scope.of_rows_of_groups)
        rows = self._ask(sql, dict.fromkeys(("groups", "group_losses", "group_rebalances"), ALWAYS), 1, {}).rows
        return rows[0] if rows else dict.fromkeys(TOTAL, 0)

    def verdicts(self) -> list[Row]:
        """Return `Store.fleet_verdicts` of the scope's groups: the causes of a verdict follow each other."""
        scope = self._scope
        sql = fleet_verdicts(scope.label, scope.of_groups)
        return self._ask(sql, {"verdict_sums": ALWAYS, "groups": ALWAYS}, SPLIT_ROWS, {}).rows

    def worst(self, rows: int) -> list[Row]:
        """Return the groups of the scope that lost most, as `Store.fleet` does."""
        sql = fleet_sql(self._scope.of_rows_of_groups, has_durations=False)
        wanted = Wanted(rows=rows, order="lost", least_lost=NOTHING)
        tables = dict.fromkeys(("groups", "group_losses", "group_rebalances"), ALWAYS)
        return self._ask(sql, tables, rows, {"q": "", **wanted.parameters()}).rows

    def split(self, by: str, *, rows: int = SPLIT_ROWS, only: Sequence[tuple[str, str]] | None = None) -> Rows:
        """Return the sums by verdict and cause (``), `cluster`, `team` or `group`: the greatest loss first.

        Each row has `lost`, its bounds, `rebalances`, `observed`, and the most costly verdict and cause with their loss
        (`main_verdict`, `main_cause`, `lost_mostly`). `total` is the number of all rows. `team` is the team's position
        in the settings (`Teams.name_at`). `only` limits the rows to these groups.
        """
        scope = self._scope
        chosen = "true" if only is None else "cluster || chr(10) || group_id IN (SELECT unnest($groups))"
        sql = sums(by, scope.label, scope.of_groups, scope.of_verdicts, chosen)
        given = {} if only is None else {"groups": [f"{cluster}\n{group}" for cluster, group in only]}
        return self._ask(sql, {"verdict_sums": ALWAYS, "groups": ALWAYS}, rows, given)

    def over_time(self, origin: int, slot_ms: int) -> Rows:
        """Return `lost` and `rebalances` by `verdict` and `slot`, the number of `slot_ms` since `origin`."""
        scope = self._scope
        sql = over_time(scope.label, scope.of_groups, scope.of_rows, scope.of_verdicts)
        tables = of_window(self._window, "verdicts") | {"groups": ALWAYS}
        return self._ask(sql, tables, SLOT_ROWS, {"origin": origin, "slot": slot_ms})

    def pending(self) -> Pending:
        """Return how many completed rebalances have no verdict yet, whatever verdict the scope is limited to."""
        scope = self._scope
        sql = first_pending(scope.label, scope.of_groups, scope.of_rows, has_verdicts=self._has_verdicts)
        rows = self._ask(sql, self._of_pending(), 1, {}).rows
        return Pending(rows[0]["rebalances"], rows[0]["first_at"]) if rows else Pending(0, None)

    def pending_by(self, by: str, pending: Pending, origin: int = 0, slot_ms: int = 1) -> list[Row]:
        """Return `rebalances` and `lost` of these by `slot` (as in `over_time`), `cluster`, `team` or `group`."""
        if not pending.rebalances or pending.first_at is None:
            return []
        scope = self._scope
        sql = pending_sums(by, scope.label, scope.of_groups, scope.of_rows, has_verdicts=self._has_verdicts)
        # Stalls caused by a generation cannot have ended before it began.
        stalls: Between = (moment(max(0, pending.first_at - DAY_MS)), None)
        tables = self._of_pending() | {"stalls": stalls}
        return self._ask(sql, tables, SLOT_ROWS, {"origin": origin, "slot": slot_ms}).rows

    def _of_pending(self) -> dict[str, Between]:
        names = ("generations", *(("verdicts",) if self._has_verdicts else ()))
        return of_window(self._window, *names) | {"groups": ALWAYS}

    def _ask(self, sql: str, tables: dict[str, Between], cap: int, more: Mapping[str, Parameter]) -> Rows:
        given = {**self._scope.parameters, **more, **window_parameters(self._window)}
        return self._lake.query(sql, tables, cap, given)


def compared(
    store: GoldStore, window: Window, before: Window, scope: Scope, by: str, pending: Pending, rows: int = SPLIT_ROWS
) -> Rows:
    """Return the rows of `Causes.split` with the same sums of the range before.

    They are `lost_before` and `rebalances_before`; `pending_lost` and `pending_rebalances` are the sums of rebalances
    without a verdict (0 in the split by cause, which has no row for them). Rows without a verdict in the range come
    last; of groups, those that only have sums before are left out.
    """
    now, of_before = Causes(store, window, scope), Causes(store, before, scope)
    waiting = ahead(now.pending_by, by, pending) if by else None
    found = now.split(by, rows=rows)
    only = [(row["cluster"], row["group_id"]) for row in found.rows] if by == "group" else None
    earlier = of_before.split(by, rows=rows, only=only).rows if found.rows or by != "group" else []
    keys = KEYS[by]
    merged: dict[tuple[Any, ...], Row] = {_key(row, keys): NO_LOSS | row for row in found.rows}
    for row in earlier:
        name = _key(row, keys)
        row_now = merged.setdefault(name, NO_LOSS | dict(zip(keys, name, strict=True)))
        row_now |= {"lost_before": row["lost"], "rebalances_before": row["rebalances"]}
    for row in waiting.result() if waiting else ():
        name = _key(row, keys)
        if name in merged or by != "group" or len(merged) < rows:
            row_now = merged.setdefault(name, NO_LOSS | dict(zip(keys, name, strict=True)))
            row_now |= {"pending_lost": row["lost"], "pending_rebalances": row["rebalances"]}
    return Rows(list(merged.values()), found.is_capped)


def _key(row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in keys)
