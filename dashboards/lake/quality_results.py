"""The newest results of the quality rules. The Health page shows them, and `regroup quality` continues from them."""

from __future__ import annotations

from dashboards.lake.lake import Lake, Row

RULE_ROWS = 5_000
RESULTS = """
SELECT r.table_name, r.rule, r.table_id, r.version, r.checked_at, r.severity, r.sentence, r.passed, r.rows_checked,
       r.rows_failed, r.examples
FROM quality_results r
JOIN (SELECT table_name, max(checked_at) AS checked_at FROM quality_results GROUP BY table_name) latest
  ON r.table_name = latest.table_name AND r.checked_at = latest.checked_at
ORDER BY r.table_name, r.rule LIMIT $cap
"""


def newest_results(lake: Lake) -> list[Row]:
    """Return the rows of `quality_results` that the last check of each table wrote, one for each rule."""
    return lake.query(RESULTS, ("quality_results",), RULE_ROWS, {}).rows
