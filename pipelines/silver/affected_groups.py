"""The groups that new bronze rows belong to, in SQL that both Spark and DuckDB can run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from pipelines.arrow_types import TYPES
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.tables import RESOURCES, Table

TOPIC_KIND = "topic"
"""The kind of observations that name a topic."""

START = "TIMESTAMP '1970-01-01 00:00:00'"
"""The time of a row without a timestamp. Such a row may belong anywhere, so its group is rebuilt from the start."""


AFFECTED = pa.schema(
    [
        ("cluster", TYPES["STRING"]),
        ("group_id", TYPES["STRING"]),
        ("since_at", TYPES["TIMESTAMP"]),
        ("last_commit_at", TYPES["TIMESTAMP"]),
        ("committed", TYPES[RESOURCES]),
        ("topic_ids", TYPES["ARRAY<STRING>"]),
        ("topics", TYPES["ARRAY<STRING>"]),
        ("has_classic", TYPES["BOOLEAN"]),
        ("has_modern", TYPES["BOOLEAN"]),
        ("until_at", TYPES["TIMESTAMP"]),
        ("last_generation_id", TYPES["INT"]),
    ]
)
"""The columns that `by_group` returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The expressions that differ between Spark and DuckDB."""

    resource: str
    no_resource: str
    topic_id: str
    topic: str
    generation_id: str


SPARK = Dialect(
    resource="named_struct('name', topic, 'index', partition)",
    no_resource="CAST(NULL AS STRUCT<name: STRING, index: INT>)",
    topic_id="get_json_object(body, '$.topic_id')",
    topic="get_json_object(body, '$.topic')",
    generation_id="get_json_object(body, '$.value.generation')",
)
DUCKDB = Dialect(
    resource="struct_pack(name := topic, index := partition)",
    no_resource="CAST(NULL AS STRUCT(name VARCHAR, index INTEGER))",
    topic_id="json_extract_string(body, '$.topic_id')",
    topic="json_extract_string(body, '$.topic')",
    generation_id="json_extract_string(body, '$.value.generation')",
)


def affected_rows(table: Table, rows: str, dialect: Dialect) -> str:
    """Return SQL with one row for each row of a bronze table.

    Its columns are cluster, group_id, since_at, is_commit, last_commit_at, committed, topic_id, polled_topic,
    has_classic, has_modern, until_at and last_generation_id; `by_group` describes them.
    """
    columns = {
        "group_id": "group_id",
        "since_at": START,
        "is_commit": "false",
        "last_commit_at": "CAST(NULL AS TIMESTAMP)",
        "committed": dialect.no_resource,
        "topic_id": "CAST(NULL AS STRING)",
        "polled_topic": "CAST(NULL AS STRING)",
        "has_classic": "false",
        "has_modern": "false",
        "until_at": "CAST(NULL AS TIMESTAMP)",
        "last_generation_id": "CAST(NULL AS INT)",
    }
    chosen = "group_id IS NOT NULL"
    match table.name:
        case ADMIN_OBSERVATIONS.name:
            columns |= {
                "group_id": "CAST(NULL AS STRING)",
                "topic_id": dialect.topic_id,
                "polled_topic": dialect.topic,
            }
            chosen = f"kind = '{TOPIC_KIND}' AND coalesce({dialect.topic_id}, {dialect.topic}) IS NOT NULL"
        case COORDINATOR_RECORDS.name:
            columns["since_at"] = f"coalesce(record_at, {START})"
            columns |= {"has_classic": "record_kind = 'GroupMetadata'", "has_modern": "record_kind <> 'GroupMetadata'"}
            number = f"CASE WHEN record_kind = 'GroupMetadata' THEN {dialect.generation_id} END"
            columns |= {"until_at": "record_at", "last_generation_id": f"TRY_CAST({number} AS INT)"}
        case COORDINATOR_EVENTS.name:
            columns["since_at"] = f"coalesce(event_at, {START})"
        case OFFSET_COMMITS.name:
            columns["since_at"] = f"coalesce(first_commit_at, {START})"
            columns |= {
                "is_commit": "NOT is_tombstone",
                "last_commit_at": "last_commit_at",
                "committed": dialect.resource,
            }
    selected = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    return f"SELECT cluster, {selected} FROM {rows} WHERE {chosen}"  # noqa: S608 - the names are constants


def by_group(rows: str) -> str:
    """Return SQL that combines the rows of `affected_rows` to one row per group.

    Columns: cluster, group_id, `since_at` (time of the earliest new row), `committed` (resources) and `last_commit_at`
    (NULL unless all new rows are commits). `has_classic` and `has_modern` tell whether records of the classic protocol
    and of other protocols are among the new rows. `until_at` is the time of the latest new record, and
    `last_generation_id` the highest number of a generation in records of the classic protocol. The row with group_id
    NULL lists the topics in polls as `topics` and their ids as `topic_ids`. Lists without entries are NULL.
    """
    return f"""
    SELECT cluster, group_id, min(since_at) AS since_at,
        CASE WHEN bool_and(is_commit) THEN max(last_commit_at) END AS last_commit_at,
        array_agg(DISTINCT committed) FILTER (WHERE committed IS NOT NULL) AS committed,
        array_agg(DISTINCT topic_id) FILTER (WHERE topic_id IS NOT NULL) AS topic_ids,
        array_agg(DISTINCT polled_topic) FILTER (WHERE polled_topic IS NOT NULL) AS topics,
        bool_or(has_classic) AS has_classic, bool_or(has_modern) AS has_modern,
        max(until_at) AS until_at, max(last_generation_id) AS last_generation_id
    FROM {rows} GROUP BY cluster, group_id
    """  # noqa: S608 - the names are constants


def affected_sql(tables: Collection[Table], dialect: Dialect) -> str:
    """Return SQL for the groups of new rows (`by_group`). The new rows are in views with the tables' names."""
    return by_group(f"({' UNION ALL '.join(affected_rows(table, table.name, dialect) for table in tables)}) new_rows")


def affected_frame(table: Table, rows: DataFrame) -> DataFrame:
    """Return `affected_rows` as a Spark frame. It also works for a stream."""
    return rows.sparkSession.sql(affected_rows(table, "{rows}", SPARK), rows=rows)


def by_group_frame(rows: DataFrame) -> DataFrame:
    """Return `by_group` as a Spark frame."""
    return rows.sparkSession.sql(by_group("{rows}"), rows=rows)
