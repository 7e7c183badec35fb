"""The queries on gold: advice, storms and marks. The rules of `dashboards.queries.store` apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboards.lake.file_index import Between
from dashboards.lake.lake import Lake, Parameter, Row, Rows, Tables, moment
from dashboards.queries.change_queries import CHANGE_ROWS, CHANGES
from dashboards.queries.verdict_queries import OF_EPISODE, OF_FLEET, OF_GROUP, OF_REBALANCE, SUM_ROWS
from dashboards.teams import Teams
from dashboards.urlstate import Window
from schemas.loss_interval import OF_STOPS, OF_SUM, ONE_STOP
from schemas.states import MarkKind
from schemas.thresholds import MARK_MS

ADVICE_ROWS = 600
ADVICE_GROUPS = 15
STORM_ROWS = 200
STORM_REBALANCES = 1_000
DAY_MS = 24 * 3_600_000
MARK_ROWS = 60
"""The highest number of marks in a figure."""

ADVICE = """
WITH newest AS (
    SELECT cluster, group_id, max(as_of) AS as_of FROM advice
    WHERE contains(lower(group_id), lower($q)) GROUP BY cluster, group_id
), ranked AS (
    SELECT advice.*, max(CASE WHEN is_recommended THEN saving ELSE 0 END) OVER (PARTITION BY cluster, group_id) AS best,
           max(lost_now) OVER (PARTITION BY cluster, group_id) AS lost,
           max(CASE WHEN is_recommended AND action <> 'none' THEN 1 ELSE 0 END)
               OVER (PARTITION BY cluster, group_id) AS is_worth
    FROM advice JOIN newest USING (cluster, group_id, as_of)
), placed AS (
    SELECT *, dense_rank() OVER (ORDER BY best DESC, lost DESC, cluster, group_id) AS position FROM ranked
)
SELECT *, (SELECT count(*) FROM newest) AS total,
       (SELECT count(DISTINCT (cluster, group_id)) FROM ranked WHERE is_worth = 1) AS advised
FROM placed WHERE position > $skip AND position <= $skip + $groups
ORDER BY position, rank LIMIT $cap
"""

STORMS = """
SELECT * FROM storms
WHERE started_at < $end AND (ended_at IS NULL OR ended_at >= $start)
ORDER BY is_open DESC, lost_resource_seconds DESC, started_at DESC, cluster, storm_id
LIMIT $cap
"""

STORM = "SELECT * FROM storms WHERE storm_id = $storm ORDER BY cluster LIMIT $cap"

DISTURBED = f"""
WITH made AS (
    SELECT * FROM generations
    WHERE cluster = $cluster AND list_contains(CAST($groups AS VARCHAR[]), group_id)
      AND joined_at >= $start AND joined_at < $end
), stopped AS (
    SELECT group_id, {ONE_STOP}, {OF_STOPS}
    FROM stalls JOIN made USING (cluster, group_id, incarnation, generation_id)
    WHERE cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
      AND (cause <> 'static_restart' OR stopped_by_offset = made.source_offset)
    GROUP BY group_id, {ONE_STOP}
), cost AS (
    SELECT group_id, incarnation, generation_id, {OF_SUM}
    FROM stopped GROUP BY group_id, incarnation, generation_id
)
SELECT made.*, coalesce(cost.lost_min, 0) AS lost_min, coalesce(cost.lost, 0) AS lost,
       coalesce(cost.lost_max, 0) AS lost_max, coalesce(cost.lost_low, 0) AS lost_low,
       coalesce(cost.lost_high, 0) AS lost_high
FROM made LEFT JOIN cost USING (group_id, incarnation, generation_id)
ORDER BY made.joined_at DESC, made.group_id, made.generation_id
LIMIT $cap
"""  # noqa: S608 - our own names

MARKS = """
WITH announced AS (
    SELECT cluster, marked_at, kind, text, marked_by,
           coalesce(group_ids, CASE WHEN group_id IS NULL THEN [] ELSE [group_id] END) AS group_ids
    FROM marks
    WHERE marked_at >= $start AND marked_at < $end AND ($cluster = '' OR cluster = $cluster) AND kind <> 'kubernetes'
)
SELECT * FROM announced
WHERE array_length(group_ids) = 0 OR array_length(CAST($groups AS VARCHAR[])) = 0
   OR array_length(list_filter(group_ids, lambda id: list_contains(CAST($groups AS VARCHAR[]), id))) > 0
ORDER BY marked_at DESC, cluster, kind, text
LIMIT $cap
"""

POD_CHANGES = """
SELECT cluster, group_id, pod_changes FROM verdicts
WHERE joined_at >= $start AND joined_at < $end AND ($cluster = '' OR cluster = $cluster)
  AND array_length(pod_changes) > 0
  AND (array_length(CAST($groups AS VARCHAR[])) = 0 OR list_contains(CAST($groups AS VARCHAR[]), group_id))
ORDER BY joined_at DESC, cluster, group_id
LIMIT $cap
"""


class GoldStore:
    """The queries on one warehouse. `teams` are those of the settings."""

    def __init__(self, lake: Lake, teams: Teams | None = None) -> None:
        self._lake = lake
        self.teams = teams or Teams()

    @property
    def lake(self) -> Lake:
        """Return the lake, for pages with other queries."""
        return self._lake

    def versions(self) -> Mapping[str, int]:
        """Return the version of each table. It changes exactly when a response may have changed."""
        return self._lake.versions()

    def advice(self, q: str = "", skip: int = 0, groups: int = ADVICE_GROUPS) -> Rows:
        """Return the newest advice for `groups` groups whose id contains `q`, after skipping `skip` groups.

        Groups with the largest saving come first; within a group, the best proposal. In each row, `total` is the number
        of analyzed groups, and `advised` the number of groups that should change.
        """
        return self._lake.query(ADVICE, ("advice",), ADVICE_ROWS, {"q": q, "skip": skip, "groups": groups})

    def setting_changes(self, q: str = "", *, cluster: str = "", group: str = "") -> Rows:
        """Return the newest changes of settings of groups whose id contains `q`, or of one group, newest first."""
        parameters: dict[str, Parameter] = {"q": q, "cluster": cluster, "group": group}
        return self._lake.query(CHANGES, ("setting_changes",), CHANGE_ROWS, parameters)

    def storms(self, window: Window, rows: int = STORM_ROWS) -> Rows:
        """Return up to `rows` storms of the window: open ones first, then by cost."""
        return self._lake.query(STORMS, ("storms",), rows, window_parameters(window))

    def storm(self, storm_id: str) -> Row | None:
        rows = self._ask(STORM, ("storms",), 1, storm=storm_id)
        return rows[0] if rows else None

    def disturbed(self, cluster: str, groups: Sequence[str], window: Window) -> Rows:
        """Return the generations of these groups in the window, newest first, each with its cost."""
        parameters: dict[str, Parameter] = {"cluster": cluster, "groups": list(groups), **window_parameters(window)}
        # Stalls caused by a generation cannot have ended before it began.
        tables = of_window(window, "generations") | {"stalls": (moment(window.start - DAY_MS), None)}
        return self._lake.query(DISTURBED, tables, STORM_REBALANCES, parameters)

    def verdict(self, cluster: str, group: str, incarnation: int, generation: int) -> Row | None:
        """Return the verdict on the rebalance to a generation; None if it has none (yet)."""
        key: dict[str, Parameter] = {"cluster": cluster, "group": group, "incarnation": incarnation}
        rows = self._ask(OF_REBALANCE, ("verdicts",), 1, **key, generation=generation)
        return rows[0] if rows else None

    def episode_verdicts(self, episode: Row) -> list[Row]:
        """Return `verdict`, `rebalances` and `lost` (resource-seconds) of an episode, the greatest loss first."""
        return self._ask(
            OF_EPISODE,
            ("verdicts",),
            SUM_ROWS,
            cluster=episode["cluster"],
            group=episode["group_id"],
            incarnation=episode["incarnation"],
            first=episode["first_generation_id"],
            last=episode["last_generation_id"],
        )

    def group_verdicts(self, cluster: str, group: str, window: Window) -> list[Row]:
        """Return the group's rebalances of the window by verdict and cause: their number and loss; `observed` of them
        have observed verdicts. The verdict with the greatest loss comes first.
        """
        tables = of_window(window, "verdicts")
        return self._ask(OF_GROUP, tables, SUM_ROWS, cluster=cluster, group=group, **window_parameters(window))

    def fleet_verdicts(self, window: Window) -> list[Row]:
        """Return all rebalances of the window by verdict and cause: their number, groups and loss; `observed` of them
        have observed verdicts. The verdict with the greatest loss comes first.
        """
        return self._ask(OF_FLEET, of_window(window, "verdict_sums"), SUM_ROWS, **window_parameters(window))

    def marks(self, window: Window, cluster: str = "", groups: Sequence[str] = ()) -> list[Row]:
        """Return the newest marks of the window, oldest first. If groups are given, omit marks of other groups.

        Changes of pods are among them if they came shortly before a member in that pod was gone.
        """
        rows = self._ask(
            MARKS, ("marks",), MARK_ROWS, cluster=cluster, groups=list(groups), **window_parameters(window)
        )
        found = [*rows, *self._pod_changes(window, cluster, groups)]
        found.sort(key=lambda m: (-m["marked_at"], m["cluster"], m["kind"], m["text"]))
        return found[:MARK_ROWS][::-1]

    def _pod_changes(self, window: Window, cluster: str, groups: Sequence[str]) -> list[Row]:
        """Return changes of pods as rows like those of marks, with the groups whose members were in the pod."""
        wide = Window(window.start, window.end + MARK_MS, is_live=False)
        rows = self._ask(
            POD_CHANGES,
            of_window(wide, "verdicts"),
            MARK_ROWS,
            cluster=cluster,
            groups=list(groups),
            **window_parameters(wide),
        )
        of_change: dict[tuple[str, int, str], set[str]] = {}
        for row in rows:
            for change in row["pod_changes"]:
                if window.start <= change["changed_ms"] < window.end:
                    key = row["cluster"], change["changed_ms"], change["text"]
                    of_change.setdefault(key, set()).add(row["group_id"])
        return [
            {
                "cluster": of_cluster,
                "marked_at": at,
                "kind": MarkKind.KUBERNETES.value,
                "text": text,
                "marked_by": None,
                "group_ids": sorted(mine),
            }
            for (of_cluster, at, text), mine in of_change.items()
        ]

    def _ask(self, sql: str, tables: Tables, cap: int, **parameters: Parameter) -> list[Row]:
        return self._lake.query(sql, tables, cap, parameters).rows


def window_parameters(window: Window) -> dict[str, Parameter]:
    """Return the window's ends as query parameters."""
    return {"start": moment(window.start), "end": moment(window.end)}


def of_window(window: Window, *tables: str) -> dict[str, Between]:
    """Return the tables of a query that needs only their rows that overlap the window."""
    return dict.fromkeys(tables, (moment(window.start), moment(window.end)))
