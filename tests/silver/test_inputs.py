"""DuckDB, for a few groups, and Spark, for many, read the same rows that a batch may replace."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import jobs.silver.inputs
import jobs.silver.silver_tasks
from jobs.build import rebuild_all
from jobs.config.settings import Settings
from jobs.replay import Capture, bronze_of
from jobs.silver.inputs import SilverInputs
from jobs.silver.silver_tasks import Making, silver_by_tasks
from jobs.silver.topic_names import polled_topics
from jobs.spark.session_provider import Provider
from jobs.tables.paths import table_path
from pipelines.arrow_types import row_type, stored_rows
from pipelines.silver.affected_groups import AFFECTED
from pipelines.silver.carrying import valid_points
from pipelines.silver.commits.pruned_commits import pruned_commits
from pipelines.silver.frame import INPUTS, UNUSED
from schemas.silver import GENERATIONS, RESUME_POINTS, SILVER
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, silver_of


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Write bronze and silver of a recorded churn, in several files each; return the folder and silver's rows."""
    folder, given = tmp_path_factory.mktemp("stored"), batches("eager_churn", count=4)
    rows = silver_of(given, "eager_churn")
    for table in SILVER:
        write(folder, table, stored_rows(rows[table.name], table))
    for batch in given:
        bronze = bronze_of(batch, "kafka", Capture(CAPTURES / "eager_churn").meta)
        for table in INPUTS.values():
            write(folder, table, pa.array(bronze[table.name], row_type(table)))
    return folder, rows


@pytest.fixture(scope="module")
def pointed(stored, tmp_path_factory):
    """The same with a point before each generation, from which a rebuild may resume although the group does not rest."""
    folder, rows = stored
    copy = Path(shutil.copytree(folder, tmp_path_factory.mktemp("pointed") / "warehouse"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(valid_points, "EVERY", 1)
        found = silver_of(batches("eager_churn", count=4), "eager_churn")[RESUME_POINTS.name]
    write(copy, RESUME_POINTS, stored_rows(found, RESUME_POINTS))
    return copy, rows


def write(folder, table, rows) -> None:
    write_deltalake(table_path(folder, table), pa.Table.from_struct_array(rows), mode="append")


def ordered(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


START = datetime.fromtimestamp(0, UTC)
GROUPS_TOUCHED = pa.schema([field for field in AFFECTED if field.name != "topic_ids"])


@pytest.mark.parametrize(("share", "committed"), [(0.0, "nothing"), (0.5, "unknown"), (0.9, "all"), (1.0, "all")])
def test_few_and_many_groups_give_the_same_rows(spark, pointed, monkeypatch, share, committed) -> None:
    folder, rows = pointed
    groups = [(row["cluster"], row["group_id"]) for row in rows["groups"]]
    times = sorted(row["joined_at"] for row in rows["generations"])
    # The last point lies after all rows.
    times.append(times[-1] + 3_600_000)
    since = datetime.fromtimestamp(times[int((len(times) - 1) * share)] / 1000, UTC)
    owned = {(row["name"], row["index"]) for row in rows["stalls"]}
    resources = {"nothing": [], "unknown": [("none", 0)], "all": owned}[committed]
    now = {
        "since_at": since,
        "last_commit_at": since,
        "committed": [dict(zip(("name", "index"), r, strict=True)) for r in resources],
    }
    described = [{"cluster": cluster, "group_id": group, **now} for cluster, group in groups]
    affected = pa.Table.from_pylist(described, GROUPS_TOUCHED)

    def read(most: int) -> dict[str, list[str]]:
        monkeypatch.setattr(jobs.silver.inputs, "FEW_GROUPS", most)
        monkeypatch.setattr(jobs.silver.inputs, "needs_spark", lambda *_: True)
        standing = SilverInputs(spark=spark, warehouse=folder, affected=affected)
        restarts = standing.restarts()
        old, new = standing.committing()
        found = {table.name: ordered(standing.replaced(table, restarts)) for table in SILVER}
        history = standing.history(restarts)
        if history is None:
            history = dict(zip(INPUTS, (frame.toArrow() for frame in standing.frames(restarts)), strict=True))
            history["run"] = pruned_commits(history["run"], history["record"])
        for name, rows in history.items():
            found[name] = ordered(rows.select([n for n in INPUTS[name].names if n not in UNUSED]))
        return found | {"points": ordered(restarts), "old": ordered(old), "new": ordered(new)}

    few, many = read(len(groups)), read(0)
    assert few == many
    assert sum(map(len, few.values())) > 0
    assert share != 0.5 or any("'unfinished_stalls': '|" in point for point in few["points"])
    assert few["new"] or share < 1.0, "after everything a commit changes nothing else"
    monkeypatch.setattr(jobs.silver.inputs, "LATELY_MS", 20_000)
    monkeypatch.setattr(jobs.silver.inputs, "ASTRAY_MS", 10_000)
    assert read(len(groups)) == many, "whether or not a group rebalanced lately"
    monkeypatch.setattr(jobs.silver.inputs, "FEW_ROWS", 0)
    assert read(len(groups)) == many, "a long history does not go through the driver"


@pytest.mark.parametrize(("in_files", "processes"), [(True, 0), (False, 0), (True, 2), (False, 2)])
def test_tasks_make_the_rows_that_the_driver_makes(spark, stored, monkeypatch, in_files, processes) -> None:
    """In the tasks of a session with executors, or in this number of processes."""
    folder, rows = stored
    if not processes:
        monkeypatch.setattr(jobs.silver.silver_tasks, "provider", lambda: Provider.CONTEXT)
    monkeypatch.setattr(jobs.silver.silver_tasks, "POOLED", 0)
    groups = [{"cluster": row["cluster"], "group_id": row["group_id"], "since_at": START} for row in rows["groups"]]
    for of_these in (groups, []):
        affected = pa.Table.from_pylist(of_these, GROUPS_TOUCHED)
        standing = SilverInputs(spark=spark, warehouse=folder, affected=affected)
        restarts, making = standing.restarts(), Making.of(Settings(warehouse=folder), polled_topics(folder))
        expected = making.rows(standing.history(restarts), restarts)
        monkeypatch.setattr(jobs.silver.silver_tasks, "LEAST", 1)
        made = silver_by_tasks(
            spark, folder, restarts, making, in_files=in_files, few_bytes=0, processes=processes or 1
        )
        for table in SILVER:
            assert in_files or not made[table].files
            assert not made[table].files or not made[table].few.num_rows
            files = [pq.read_table(f"{folder / table.name}/{file.name}") for file in made[table].files]
            found = pa.concat_tables([made[table].few, *(file.cast(made[table].few.schema) for file in files)])
            assert ordered(found) == ordered(expected[table])
        assert not of_these or in_files == (len(made[GENERATIONS].files) > 1)


def test_what_silver_holds_does_not_matter_where_all_is_made_anew(spark, stored, tmp_path) -> None:
    folder, rows = stored
    warehouse = Path(shutil.copytree(folder, tmp_path / "warehouse"))
    expected = {table: len(rows[table.name]) for table in SILVER}
    for _ in range(2):
        rebuild_all(spark, Settings(warehouse=warehouse))
        assert {t: DeltaTable(table_path(warehouse, t)).to_pyarrow_table().num_rows for t in SILVER} == expected
        for table in SILVER:
            for file in (warehouse / table.name).glob("*.parquet"):
                file.unlink()
