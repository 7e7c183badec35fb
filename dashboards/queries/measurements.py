"""What the members of a group measured themselves around a rebalance (KIP-714)."""

from __future__ import annotations

from dashboards.lake.lake import Lake, Row, moment
from dashboards.queries.generation_times import ended
from dashboards.queries.gold_store import of_window, window_parameters
from dashboards.queries.store import Rebalance
from dashboards.urlstate import Window

MEASURED_ROWS = 2_000
REACH_MS = 3_600_000
"""The longest push interval that a broker accepts (`interval.ms` of a subscription). The default is 5 minutes."""

MEASURED = """
WITH ranked AS (
    SELECT *, row_number() OVER (
        PARTITION BY member_id, measured_at >= $at
        ORDER BY CASE WHEN measured_at >= $at THEN measured_at END, measured_at DESC, source_id, line_no
    ) AS position
    FROM client_metrics
    WHERE cluster = $cluster AND group_id = $group AND member_id IS NOT NULL
      AND measured_at >= $start AND measured_at < $end
)
SELECT * FROM ranked WHERE position = 1 ORDER BY member_id, measured_at LIMIT $cap
"""

SOFTWARE_ROWS = 20
SOFTWARE = """
SELECT software_name, software_version, count(DISTINCT coalesce(client_instance_id, member_id)) AS clients
FROM client_metrics
WHERE cluster = $cluster AND group_id = $group AND measured_at >= $start AND measured_at < $end
  AND software_name IS NOT NULL
GROUP BY software_name, software_version
ORDER BY clients DESC, software_name, software_version
LIMIT $cap
"""


def measured_around(lake: Lake, found: Rebalance) -> list[Row]:
    """Return the last push of each member before the end of a rebalance and the first one after it, by member and time.

    Only pushes within `REACH_MS` are looked for. The end is by the broker's clock, the pushes by those of the clients.
    """
    g = found.generation
    at = ended(g)
    near = Window(at - REACH_MS, at + REACH_MS, is_live=False)
    parameters = {"cluster": g["cluster"], "group": g["group_id"], "at": moment(at), **window_parameters(near)}
    rows = lake.query(MEASURED, of_window(near, "client_metrics"), MEASURED_ROWS, parameters).rows
    known = {member["member_id"] for member in found.everybody}
    return [row for row in rows if row["member_id"] in known]


def software_of(lake: Lake, cluster: str, group: str, window: Window) -> list[Row]:
    """Return name and version of the software of the group's clients, as they told the brokers in the window.

    `clients` is the number of consumers that pushed with it.
    """
    parameters = {"cluster": cluster, "group": group, **window_parameters(window)}
    return lake.query(SOFTWARE, of_window(window, "client_metrics"), SOFTWARE_ROWS, parameters).rows
