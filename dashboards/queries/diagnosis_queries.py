"""SQL on the diagnoses, for `dashboards.queries.store`. The rules are there."""

from __future__ import annotations

DIAGNOSIS_ROWS = 3_000

NEWEST = """
WITH newest AS (
    SELECT cluster, group_id, max(as_of) AS as_of FROM diagnoses
    WHERE contains(lower(group_id), lower($q))
      AND (array_length(CAST($groups AS VARCHAR[])) = 0 OR list_contains(CAST($groups AS VARCHAR[]), group_id))
    GROUP BY cluster, group_id
)
SELECT diagnoses.* FROM diagnoses JOIN newest USING (cluster, group_id, as_of)
ORDER BY cluster, group_id, rank LIMIT $cap
"""

OF_WINDOW = """
WITH mine AS (
    -- There is one diagnosis per day; take the last day of the window.
    SELECT * FROM diagnoses WHERE cluster = $cluster AND group_id = $group AND as_of >= $start
      AND as_of < date_trunc('day', CAST($end AS TIMESTAMPTZ)) + INTERVAL 1 DAY
)
SELECT * FROM mine WHERE as_of = (SELECT max(as_of) FROM mine) ORDER BY rank LIMIT $cap
"""
