"""SQL on changes of settings, for `dashboards.queries.gold_store`. The rules of `dashboards.queries.store` apply."""

from __future__ import annotations

CHANGE_ROWS = 50

CHANGES = """
WITH ranked AS (
    SELECT *, row_number() OVER (
        PARTITION BY cluster, group_id, changed_at
        ORDER BY least(absences_before, absences_after) DESC, absences_before + absences_after DESC, as_of DESC
    ) AS place
    FROM setting_changes
    WHERE contains(lower(group_id), lower($q))
      AND ($group = '' OR (cluster = $cluster AND group_id = $group))
)
SELECT * FROM ranked WHERE place = 1
ORDER BY changed_at DESC, cluster, group_id LIMIT $cap
"""
"""A change is in the analyses of up to seven days. The query uses the analysis with the most absences on both sides."""
