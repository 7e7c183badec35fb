"""Rows that Spark compares and merges, next to the same work in the driver."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.retention.retention import DAY_MS, unsettled, unsettled_frames
from jobs.silver.staging import StagedRows
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import read
from jobs.tables.location import bind
from jobs.tables.merge_frames import frame_changes, merge_frames
from jobs.tables.paths import table_path
from jobs.tables.replace import NEW, changes
from pipelines.arrow_types import stored
from schemas.silver import GENERATIONS, GROUPS
from tests.whole_rows import whole

BEGIN = 1_790_000_000_000


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    bind(tmp_path / "states", str(tmp_path / "tables"))
    return tmp_path / "states"


def generations(**of_number) -> pa.Table:
    """One generation of a group for each number, an hour apart; a value is its trigger reason."""
    rows = []
    for name, reason in of_number.items():
        number = int(name.removeprefix("n"))
        key = {"cluster": "kafka", "group_id": f"group-{number % 2}", "incarnation": 0, "generation_id": number}
        at = BEGIN + number * 3_600_000
        values = {"joined_at": at, "completed_at": at, "outcome": "completed", "trigger_reason": reason}
        rows.append(whole(key | values, GENERATIONS))
    return stored(rows, GENERATIONS)


def ordered(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


OLD = generations(n1="a", n2=None, n3=None, n4="b", n5="c")
NEW_ROWS = generations(n1="a", n2=None, n3="new", n4=None, n6="d", n40="e")
"""Two rows that stay the same, one of them with NULL; two that differ by NULL; one that goes, and two that come."""


def test_spark_finds_the_changes_that_the_driver_finds(spark) -> None:
    old, new = (spark.createDataFrame(rows) for rows in (OLD, NEW_ROWS))
    found = frame_changes(old, new, GENERATIONS).toArrow()
    plain = found.rename_columns([name.removeprefix(NEW) for name in found.column_names])
    expected = changes(OLD, NEW_ROWS, GENERATIONS).with_kinds()
    assert ordered(expected) == ordered(plain.select(expected.column_names))
    assert 5 == plain.num_rows


@pytest.mark.parametrize("kept", [None, BEGIN, BEGIN + 4 * 3_600_000 - DAY_MS, BEGIN + DAY_MS])
def test_spark_keeps_the_settled_rows_that_the_driver_keeps(spark, tmp_path, kept) -> None:
    if kept is not None:
        (tmp_path / "_kept").mkdir()
        (tmp_path / "_kept" / "offset_commits").write_text(str(kept))
    expected = unsettled(tmp_path, OLD, NEW_ROWS, GENERATIONS)
    frames = unsettled_frames(tmp_path, *(spark.createDataFrame(rows) for rows in (OLD, NEW_ROWS)), GENERATIONS)
    assert [ordered(rows) for rows in expected] == [ordered(frame.toArrow()) for frame in frames]
    assert (kept is None) == (expected[0].num_rows == OLD.num_rows)


def test_a_repeated_merge_changes_nothing_and_leaves_other_files_alone(spark, elsewhere) -> None:
    create_tables(spark, elsewhere, (GENERATIONS,))
    path = table_path(elsewhere, GENERATIONS)
    other = generations(n100="other")
    for rows in (other, OLD):
        spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append").save(path.address)
    before = F.col("joined_at") < F.timestamp_millis(F.lit(BEGIN + 99 * 3_600_000))

    def merged(new: pa.Table) -> dict[str, str]:
        def sides():
            return read(spark, elsewhere, GENERATIONS).where(before), spark.createDataFrame(new)

        merge_frames(elsewhere, GENERATIONS, sides, [before])
        (last,) = spark.sql(f"DESCRIBE HISTORY {path} LIMIT 1").select("operationMetrics").collect()
        return last[0]

    metrics = merged(NEW_ROWS)
    numbers = [int(metrics[f"numTargetRows{kind}"]) for kind in ("Inserted", "Updated", "Deleted", "Copied")]
    assert [2, 2, 1, 2] == numbers
    merged(NEW_ROWS)
    expected = pa.concat_tables([other, NEW_ROWS])
    assert ordered(expected) == ordered(read(spark, elsewhere, GENERATIONS).select(*GENERATIONS.names).toArrow())


def test_staged_rows_are_those_of_one_batch_whoever_writes_next(spark, elsewhere) -> None:
    def rows(group: str):
        filled = f"named_struct({', '.join(_field(column.name, column.type, group) for column in GROUPS.columns)})"
        return spark.sql(f"SELECT {filled} AS groups, CAST(NULL AS STRING) AS others")

    first = StagedRows.write(spark, elsewhere, rows("one"))
    second = StagedRows.write(spark, elsewhere, rows("two").drop("others"))
    for staged, group in ((first, "one"), (second, "two")):
        assert [group] == [row["group_id"] for row in staged.of(GROUPS).collect()]


def _field(name: str, kind: str, group: str) -> str:
    value = f"'{group}'" if name == "group_id" else "NULL"
    return f"'{name}', CAST({value} AS {kind})"
