"""DuckDB and Spark find the same groups for new rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from jobs.build import FOLLOWED, affected_groups
from jobs.replay import Capture, bronze_of, split
from jobs.tables.disk.data_file import write
from jobs.tables.new_rows import NewRows
from pipelines.silver.affected_groups import AFFECTED, affected_frame, by_group_frame
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from testing.recordings import CAPTURES

AT = datetime(2026, 11, 1, tzinfo=UTC)
START = datetime(1970, 1, 1, tzinfo=UTC)
RECORD = {"cluster": "c", "log_epoch": 0, "source_partition": 0, "source_offset": 0, "body": "{}"}
COMMIT = {"cluster": "c", "log_epoch": 0, "source_partition": 0, "topic": "t", "partition": 3, "is_tombstone": False}
SEEN = {"cluster": "c", "observed_at": AT, "source": "poll", "subject": ""}


def by_spark(spark, new: dict[object, NewRows]) -> pa.Table:
    frames = [affected_frame(table, spark.createDataFrame(rows.few)) for table, rows in new.items()]
    return by_group_frame(reduce(DataFrame.union, frames)).toArrow().cast(AFFECTED)


def described(found: pa.Table) -> dict[tuple[str, str | None], dict[str, object]]:
    rows = {(row.pop("cluster"), row.pop("group_id")): row for row in found.to_pylist()}
    for row in rows.values():
        for name in ("committed", "topic_ids", "topics"):
            row[name] = sorted(map(repr, row[name] or ()))
    return rows


def test_of_a_recording(spark) -> None:
    capture = Capture(CAPTURES / "rolling_restart")
    (batch,) = split(capture, ("offsets", "log", "admin"), 1, None)
    bronze = bronze_of(batch, "kafka", capture.meta)
    new = {table: NewRows.of(table, bronze[table.name]) for table in FOLLOWED}
    found = described(affected_groups(new))
    assert len(found) >= 5
    assert found == described(by_spark(spark, new))


def body(generation: int | None) -> str:
    """Return the body of a GroupMetadata record, of a tombstone without a generation."""
    return json.dumps({"key": {"group": "g"}, "value": None if generation is None else {"generation": generation}})


ROWS = {
    "a record without a time": (
        COORDINATOR_RECORDS,
        {**RECORD, "group_id": "g", "record_kind": "GroupMetadata"},
        START,
    ),
    "a record of another protocol": (
        COORDINATOR_RECORDS,
        {**RECORD, "group_id": "g", "record_kind": "ConsumerGroupMetadata", "record_at": AT},
        AT,
    ),
    "a classic record": (
        COORDINATOR_RECORDS,
        {**RECORD, "group_id": "g", "record_kind": "GroupMetadata", "record_at": AT, "body": body(7)},
        AT,
    ),
    "the tombstone of a classic group": (
        COORDINATOR_RECORDS,
        {**RECORD, "group_id": "g", "record_kind": "GroupMetadata", "record_at": AT, "body": body(None)},
        AT,
    ),
    "a line": (
        COORDINATOR_EVENTS,
        {"cluster": "c", "source_id": "b", "line_no": 1, "group_id": "g", "event_at": AT},
        AT,
    ),
    "commits": (
        OFFSET_COMMITS,
        {**COMMIT, "group_id": "g", "first_offset": 0, "first_commit_at": AT, "last_commit_at": AT},
        AT,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_of_one_row(spark, name) -> None:
    table, row, since = ROWS[name]
    new = {table: NewRows.of(table, [row])}
    found = described(affected_groups(new))
    assert found == described(by_spark(spark, new))
    assert [("c", "g")] == list(found)
    is_commit = table is OFFSET_COMMITS
    expected = {
        "since_at": since,
        "last_commit_at": AT if is_commit else None,
        "committed": ["{'name': 't', 'index': 3}"] if is_commit else [],
        "topic_ids": [],
        "topics": [],
        "has_classic": name in ("a record without a time", "a classic record", "the tombstone of a classic group"),
        "has_modern": name == "a record of another protocol",
        "until_at": row.get("record_at"),
        "last_generation_id": 7 if name == "a classic record" else None,
    }
    assert expected == found["c", "g"]


def test_topics_that_polls_name_are_of_no_group_and_lines_without_one_of_nobody(spark) -> None:
    bodies = [{"topic_id": "x"}, {"topic_id": "y"}, {"topic": "an old broker"}]
    seen = [SEEN | {"kind": "topic", "subject": str(at), "body": json.dumps(body)} for at, body in enumerate(bodies)]
    line = {"cluster": "c", "source_id": "b", "line_no": 1, "event_at": AT}
    new = {
        ADMIN_OBSERVATIONS: NewRows.of(ADMIN_OBSERVATIONS, seen),
        COORDINATOR_EVENTS: NewRows.of(COORDINATOR_EVENTS, [line]),
    }
    found = described(affected_groups(new))
    assert found == described(by_spark(spark, new))
    assert {("c", None): ["'x'", "'y'"]} == {group: row["topic_ids"] for group, row in found.items()}
    assert {("c", None): ["'an old broker'"]} == {group: row["topics"] for group, row in found.items()}


def test_rows_in_files_count_as_those_at_hand(tmp_path: Path) -> None:
    commits = [COMMIT | {"group_id": f"g{at}", "first_offset": at, "first_commit_at": AT} for at in range(4)]
    whole = NewRows.of(OFFSET_COMMITS, commits)
    files = tuple(write(tmp_path, whole.few.slice(at, 1)) for at in (1, 3))
    half = NewRows(table=OFFSET_COMMITS, few=whole.few.take([0]), files=files, folder=str(tmp_path))
    both = half.and_(NewRows(table=OFFSET_COMMITS, few=whole.few.take([2])))
    assert len(whole) == len(both)
    assert described(affected_groups({OFFSET_COMMITS: whole})) == described(affected_groups({OFFSET_COMMITS: both}))
