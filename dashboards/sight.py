"""What a reader sees who may see some groups only: decided for every table, here, below every page and every search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

import duckdb
from duckdb import ColumnExpression, ConstantExpression, DuckDBPyConnection, DuckDBPyRelation, FunctionExpression

WHOLE = ("coverage", "reassignments", "reassignment_samples")
"""They know topics, partitions and brokers, and no group."""

MASKED = {
    "quarantine": "* REPLACE (NULL AS detail, NULL AS raw_key, NULL AS raw_value)",
    "admin_observations": (
        "* REPLACE (CASE WHEN kind IN ('end_offsets', 'topic', 'log_dirs') THEN subject END AS subject, "
        "CASE WHEN kind IN ('end_offsets', 'topic', 'log_dirs') THEN body END AS body)"
    ),
    "job_runs": "* REPLACE (NULL AS error)",
    "quality_results": "* REPLACE (NULL AS examples)",
}
"""Rows that may be about any group: that they exist is told, and no word of what they say, unless it is of topics."""

STORMS = """
WITH seen AS (
    SELECT *, list_filter(group_ids, lambda id: list_bool_or([starts_with(id, p) for p in getvariable('prefixes')]))
        AS seen_ids
    FROM whole
)
SELECT * EXCLUDE (seen_ids)
       REPLACE (seen_ids AS group_ids,
                CASE WHEN len(seen_ids) = len(group_ids) THEN differences ELSE [] END AS differences,
                CASE WHEN len(seen_ids) = len(group_ids) THEN explanation END AS explanation)
FROM seen WHERE len(seen_ids) > 0
"""
"""Of a storm that also hit others: when it was, how many it hit and what it cost all of them, but not whom."""


def seen(cursor: DuckDBPyConnection, name: str, whole: DuckDBPyRelation, prefixes: Sequence[str]) -> DuckDBPyRelation:
    """The table `name` for a reader of groups whose ids begin so. A table that nothing is known of is empty."""
    if name in WHOLE:
        return whole
    if not prefixes:
        return whole.limit(0)
    if name in MASKED:
        return whole.project(MASKED[name])
    if name == "storms":
        cursor.execute("SET VARIABLE prefixes = $prefixes", {"prefixes": list(prefixes)})
        cursor.register("whole", whole)
        return cursor.sql(STORMS)
    if "group_id" not in whole.columns:
        return whole.limit(0)
    group = ColumnExpression("group_id")
    begin = [FunctionExpression("starts_with", group, ConstantExpression(prefix)) for prefix in prefixes]
    # A mark without a group is about the whole cluster.
    of_all: list[duckdb.Expression] = [group.isnull()] if name == "marks" else []
    return whole.filter(reduce(or_, [*begin, *of_all]))
