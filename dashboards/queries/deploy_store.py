"""The queries on deploys. The rules of `dashboards.queries.store` apply."""

from __future__ import annotations

from dashboards.lake.lake import Lake, Parameter, Row, Rows, moment
from dashboards.queries.gold_store import of_window, window_parameters
from dashboards.urlstate import Window

DEPLOY_ROWS = 500
STOP_ROWS = 20_000

WITH_EARLIER = """
SELECT shown.*, earlier.median_before, coalesce(earlier.deploys_before, 0) AS deploys_before, earlier.before_at
FROM shown LEFT JOIN (
    SELECT shown.cluster, shown.group_id, shown.started_at, median(deploys.lost_resource_seconds) AS median_before,
           count(*) AS deploys_before, max(deploys.started_at) AS before_at
    FROM shown JOIN deploys ON deploys.cluster = shown.cluster AND deploys.group_id = shown.group_id
        AND deploys.started_at < shown.started_at
    GROUP BY shown.cluster, shown.group_id, shown.started_at
) AS earlier USING (cluster, group_id, started_at)
ORDER BY shown.started_at DESC, shown.cluster, shown.group_id LIMIT $cap
"""

OF_ALL = f"""
WITH shown AS (
    SELECT * FROM deploys WHERE started_at >= $start AND started_at < $end AND contains(lower(group_id), lower($q))
      AND ($cluster = '' OR cluster = $cluster)
    ORDER BY started_at DESC, cluster, group_id LIMIT {DEPLOY_ROWS}
)
{WITH_EARLIER}
"""  # noqa: S608 - our own names

OF_GROUP = f"""
WITH shown AS (
    SELECT * FROM deploys
    WHERE cluster = $cluster AND group_id = $group AND started_at >= $start AND started_at < $end
    ORDER BY started_at DESC LIMIT {DEPLOY_ROWS}
)
{WITH_EARLIER}
"""  # noqa: S608 - our own names

STOPS = """
SELECT stopped_at_earliest, stopped_at_latest, resumed_at_earliest, stopped_ms FROM stalls
WHERE cluster = $cluster AND group_id = $group AND stopped_at_latest < $end
  AND (resumed_at_latest IS NULL OR resumed_at_latest >= $start)
ORDER BY stopped_at_latest, name, index LIMIT $cap
"""

FIRST, LAST = 0, 253_000_000_000_000
"""A range that holds every deploy: from 1970 to the year 9987."""


class DeployStore:
    """The queries on the deploys of one warehouse.

    A row has the columns of `deploys`; `median_before`, the median cost of all deploys of the group before it, and
    `before_at`, the start of the last of them (both None for the first known deploy); and their number,
    `deploys_before`.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def deploys(self, window: Window, q: str = "", cluster: str = "") -> Rows:
        """Return the deploys that began in the window, newest first.

        They are of groups whose id contains `q`, in one cluster or, if its name is empty, in all.
        """
        asked: dict[str, Parameter] = {"q": q, "cluster": cluster}
        return self._lake.query(OF_ALL, ("deploys",), DEPLOY_ROWS, {**asked, **window_parameters(window)})

    def of_group(self, cluster: str, group: str, window: Window | None = None, rows: int = DEPLOY_ROWS) -> Rows:
        """Return the deploys of a group that began in the window, or at any time, newest first."""
        limits = {"start": moment(FIRST), "end": moment(LAST)} if window is None else window_parameters(window)
        key: dict[str, Parameter] = {"cluster": cluster, "group": group}
        return self._lake.query(OF_GROUP, ("deploys",), rows, {**key, **limits})

    def deploy(self, cluster: str, group: str, started_at: int) -> Row | None:
        """Return the deploy that began at this time (epoch milliseconds); None if there is none."""
        found = self.of_group(cluster, group, Window(started_at, started_at + 1, is_live=False), 1).rows
        return found[0] if found else None

    def stops(self, cluster: str, group: str, window: Window) -> Rows:
        """Return when each resource without an owner in the window stopped and resumed."""
        key: dict[str, Parameter] = {"cluster": cluster, "group": group}
        return self._lake.query(STOPS, of_window(window, "stalls"), STOP_ROWS, {**key, **window_parameters(window)})
