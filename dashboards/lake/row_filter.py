"""The rows and columns that a reader with limited groups sees, defined per table and applied to every query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from secrets import token_hex
from typing import NamedTuple

WHOLE = ("coverage", "reassignments", "reassignment_samples")
"""Tables about topics, partitions and brokers, without groups. Every reader sees them."""


class RowFilter(NamedTuple):
    """The columns that every reader sees of every row, and a condition under which the whole row is shown.

    `instead` maps other columns to expressions that replace their values. All remaining columns are hidden.
    """

    shown: tuple[str, ...]
    whole_if: str = "false"
    instead: Mapping[str, str] = {}


STORM_KEY = token_hex(32)
"""Secret of this process. A storm's id is a hash of a group's name, so a list of names would reveal the group."""
KEY_VARIABLE = "storm_key"
HIT_NOBODY_ELSE = "array_length(seen_ids) = array_length(group_ids)"
_KEY = f"getvariable('{KEY_VARIABLE}')"
STORM_TOKEN = f"substr(sha256(concat({_KEY}, sha256(concat({_KEY}, storm_id)))), 1, 32)"
MASKED = {
    "quarantine": RowFilter(
        ("cluster", "source", "log_epoch", "source_partition", "source_offset", "record_at", "reason", "lines")
    ),
    "admin_observations": RowFilter(
        ("cluster", "observed_at", "source", "kind"), whole_if="kind IN ('end_offsets', 'topic', 'log_dirs')"
    ),
    "job_runs": RowFilter(
        ("job", "run_id", "told_at", "started_at", "ended_at", "outcome", "part_of", "regroup_version", "host", "pid")
    ),
    "quality_results": RowFilter(
        ("table_name", "checked_at", "rule", "version", "severity", "sentence", "passed", "rows_checked", "rows_failed")
    ),
    "limits_reached": RowFilter(("limit_name", "cluster", "reached_at", "allowed", "groups")),
    "storms": RowFilter(
        ("cluster", "scope", "started_at", "detected_at", "ended_at", "is_open", "groups", "lost_resource_seconds_min",
         "lost_resource_seconds", "lost_resource_seconds_max", "lost_resource_seconds_low",
         "lost_resource_seconds_high"),
        whole_if=HIT_NOBODY_ELSE,
        instead={
            "storm_id": f"CASE WHEN {HIT_NOBODY_ELSE} THEN storm_id ELSE {STORM_TOKEN} END",
            "group_ids": "seen_ids",
            "differences": f"CASE WHEN {HIT_NOBODY_ELSE} THEN differences ELSE [] END",
        },
    ),
    "cluster_patterns": RowFilter(
        ("cluster", "pattern", "started_at", "last_at", "ended_at", "times", "groups", "sources", "evidence", "action"),
        whole_if=HIT_NOBODY_ELSE,
        instead={"group_ids": "seen_ids"},
    ),
    "marks": RowFilter(
        ("cluster", "marked_at", "kind", "text", "group_id", "marked_by"), instead={"group_ids": "seen_ids"}
    ),
}  # fmt: skip
"""Masks of tables whose rows may be about any group. A reader sees that a row exists, and the columns listed here,
which reveal no group. All other columns are hidden. If a storm also hit other groups, a reader sees its times, its
number of groups and its total cost.
"""

OF_GROUPS = {
    "storms": "array_length(seen_ids) > 0",
    "cluster_patterns": "array_length(seen_ids) > 0",
    "marks": "array_length(seen_ids) > 0 OR array_length(group_ids) = 0",
}
"""Tables whose rows list their groups in `group_ids`, and the condition under which a reader sees a row. `seen_ids` is
the part of that list that the reader may see. A mark with an empty list is about the whole cluster; one that Regroup
0.1 wrote has no list and is hidden, because it may be about several groups.
"""

VARIABLE = "prefix_"
"""Prefix of the names of the variables that hold the prefixes; a number follows."""


def filtered_sql(name: str, columns: Collection[str], prefixes: int) -> str:
    """Return the query of a table for a reader with this number of prefixes.

    It reads the complete table from `<name> whole`. A table that is in no list here gives no rows.
    """
    whole = f'"{name} whole"'
    if name in WHOLE:
        return f"SELECT * FROM {whole}"
    if not prefixes or (name in OF_GROUPS and "group_ids" not in columns):
        return f"SELECT * FROM {whole} WHERE false"
    if name in OF_GROUPS:
        mine = f"(SELECT *, list_filter(group_ids, lambda id: {_begins('id', prefixes)}) AS seen_ids FROM {whole})"
        return f"SELECT {_masked(MASKED[name], columns)} FROM {mine} WHERE {OF_GROUPS[name]}"
    if name in MASKED:
        return f"SELECT {_masked(MASKED[name], columns)} FROM {whole}"
    if "group_id" not in columns:
        return f"SELECT * FROM {whole} WHERE false"
    return f"SELECT * FROM {whole} WHERE {_begins('group_id', prefixes)}"


def variables(prefixes: Sequence[str]) -> dict[str, str]:
    """Return the values of the variables in `filtered_sql`."""
    return {KEY_VARIABLE: STORM_KEY} | {f"{VARIABLE}{number}": prefix for number, prefix in enumerate(prefixes)}


def _begins(column: str, prefixes: int) -> str:
    return " OR ".join(f"starts_with({column}, getvariable('{VARIABLE}{number}'))" for number in range(prefixes))


def _masked(mask: RowFilter, columns: Collection[str]) -> str:
    """Return the SELECT list for these columns."""
    hidden = f"CASE WHEN {mask.whole_if} THEN {{0}} END"
    expressions = {column: column if column in mask.shown else hidden.format(column) for column in columns} | {
        column: expression for column, expression in mask.instead.items() if column in columns
    }
    return ", ".join(f"{expression} AS {column}" for column, expression in expressions.items())
