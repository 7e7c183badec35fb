"""What a reader sees who may see some groups only: decided for every table, here, below every page and every search."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from duckdb import DuckDBPyConnection, DuckDBPyRelation

WHOLE = ("coverage", "reassignments", "reassignment_samples")
"""They know topics, partitions and brokers, and no group."""

ABOUT_TOPICS = "kind IN ('end_offsets', 'topic', 'log_dirs')"
MASKED = {
    "quarantine": {column: f"CASE WHEN false THEN {column} END" for column in ("detail", "raw_key", "raw_value")},
    "admin_observations": {column: f"CASE WHEN {ABOUT_TOPICS} THEN {column} END" for column in ("subject", "body")},
    "job_runs": {"error": "CASE WHEN false THEN error END"},
    "quality_results": {"examples": "CASE WHEN false THEN examples END"},
}
"""Rows that may be about any group: that they exist is told, and no word of what they say, unless it is of topics."""

HIT_NOBODY_ELSE = "array_length(seen_ids) = array_length(group_ids)"
STORM = {
    "group_ids": "seen_ids",
    "differences": f"CASE WHEN {HIT_NOBODY_ELSE} THEN differences ELSE [] END",
    "explanation": f"CASE WHEN {HIT_NOBODY_ELSE} THEN explanation END",
}
"""Of a storm that also hit others: when it was, how many it hit and what it cost all of them, but not whom."""

VARIABLE = "prefix_"
"""How the variables are called that hold the prefixes, with a number after it."""


def seen_sql(name: str, columns: Collection[str], prefixes: int) -> str:
    """The table for a reader of groups whose ids begin with one of so many prefixes, from the whole of it, which is
    called `<name> whole`. A table that nothing is known of is empty.
    """
    whole = f'"{name} whole"'
    if name in WHOLE:
        return f"SELECT * FROM {whole}"
    if prefixes and name in MASKED:
        return _replaced(whole, MASKED[name])
    if prefixes and name == "storms":
        mine = f"(SELECT *, list_filter(group_ids, lambda id: {_begins('id', prefixes)}) AS seen_ids FROM {whole})"
        return f"{_replaced(mine, STORM, 'seen_ids')} WHERE array_length(seen_ids) > 0"
    if not prefixes or "group_id" not in columns:
        return f"SELECT * FROM {whole} WHERE false"
    # A mark without a group is about the whole cluster.
    of_all = " OR group_id IS NULL" if name == "marks" else ""
    return f"SELECT * FROM {whole} WHERE {_begins('group_id', prefixes)}{of_all}"


def seen(cursor: DuckDBPyConnection, name: str, whole: DuckDBPyRelation, prefixes: Sequence[str]) -> DuckDBPyRelation:
    """`seen_sql` of a relation of this cursor."""
    for number, prefix in enumerate(prefixes):
        cursor.execute(f"SET VARIABLE {VARIABLE}{number} = $prefix", {"prefix": prefix})
    cursor.register(f"{name} whole", whole)
    return cursor.sql(seen_sql(name, whole.columns, len(prefixes)))


def _begins(what: str, prefixes: int) -> str:
    return " OR ".join(f"starts_with({what}, getvariable('{VARIABLE}{number}'))" for number in range(prefixes))


def _replaced(source: str, by: dict[str, str], *without: str) -> str:
    """`source` with these columns as these expressions say."""
    stated = ", ".join(f"{expression} AS {column}" for column, expression in by.items())
    return f"SELECT * EXCLUDE ({', '.join([*by, *without])}), {stated} FROM {source}"
