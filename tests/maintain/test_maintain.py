"""The maintain job on real tables: what it reduces, what it leaves unchanged, and who may write at the same time."""

from __future__ import annotations

import os
import re
import threading
import time
from datetime import datetime, timedelta
from functools import partial

import pytest
from deltalake import DeltaTable

from jobs.build import INPUTS, affected_groups, rebuild_affected, rebuild_all
from jobs.cli import main
from jobs.config.settings import Settings
from jobs.maintain import Maintenance
from jobs.processes.process_lock import acquire
from jobs.processes.worker_process import WorkerProcess
from jobs.retention.compact import merged_file
from jobs.retention.folder_files import vacuum
from jobs.retention.merge_runs import SETTLED_MS, merge_runs
from jobs.retention.merged_hour import HOUR_MS, merged_files, merged_hour
from jobs.retention.retention import DAY_MS, settled_since
from jobs.tables.delta_io import follow
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from jobs.tables.tables import FolderTables
from jobs.tables.transactions import retry_commit, table_lock
from pipelines.arrow_types import stored
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS
from schemas.operations import JOB_RUNS, QUALITY_RESULTS
from schemas.silver import (
    GENERATION_MEMBERS,
    GENERATIONS,
    GROUP_EVENTS,
    GROUPS,
    REASSIGNMENTS,
    REBALANCES,
    SILVER,
    STALLS,
)
from tests.jobs.conftest import differing, silver
from tests.maintain.conftest import (
    QUIET_MS,
    add,
    arrow,
    batches,
    make,
    rebuilt,
    rows,
    silver_again,
    texts,
)
from tests.whole_rows import whole

NEVER = {"keep_commits_days": 0, "keep_bronze_days": 0}
OLD_DAYS = 100


def maintained(spark, warehouse, *, now_ms=None, **settings) -> list[str]:
    printed: list[str] = []
    described = Settings(warehouse=warehouse, **settings)
    with WorkerProcess(merged_file) as worker:
        Maintenance(spark=spark, settings=described, say=printed.append, worker=worker).round(now_ms)
    return printed


def files(warehouse, table) -> list[str]:
    return DeltaTable(table_path(warehouse, table)).file_uris()


def newest_ms(warehouse) -> int:
    return round(max(row["last_commit_at"] for row in rows(warehouse, OFFSET_COMMITS)).timestamp() * 1000)


def commits(warehouse) -> int:
    return sum(row["commits"] for row in rows(warehouse, OFFSET_COMMITS))


def read_on(spark, warehouse, folder, table=OFFSET_COMMITS) -> int:
    """Return the rows of the table that an existing stream has not read yet."""
    stream = follow(spark, warehouse, table).writeStream.format("noop").option("checkpointLocation", str(folder))
    query = stream.trigger(availableNow=True).start()
    query.awaitTermination()
    return sum(source.numInputRows for progress in query.recentProgress for source in progress.sources)


def test_maintenance_leaves_fewer_rows_and_files_the_same_silver_and_nothing_new_for_a_stream(
    spark, recorded, tmp_path
) -> None:
    before, records, standing = len(rows(recorded, OFFSET_COMMITS)), commits(recorded), silver(recorded)
    assert before == read_on(spark, recorded, tmp_path / "stream")
    printed = {line.split(":")[0]: line for line in maintained(spark, recorded, vacuum_days=0.0, **NEVER)}
    after = len(rows(recorded, OFFSET_COMMITS))
    assert after < before
    assert records == commits(recorded)
    assert f"{before} rows merged into {after}" in printed["offset_commits"]
    assert "6 files made into 1" in printed["coordinator_records"]
    assert "old files" in printed["offset_commits"]
    for table in (OFFSET_COMMITS, COORDINATOR_RECORDS, COVERAGE):
        (file,) = files(recorded, table)
        assert [file.rsplit("/", 1)[-1]] == [path.name for path in (recorded / table.name).glob("*.parquet")]
    assert standing == silver_again(recorded)
    assert 0 == read_on(spark, recorded, tmp_path / "stream")
    assert [f"{len(SILVER) + len(BRONZE)} tables are unchanged."] == maintained(spark, recorded, **NEVER)


def test_what_is_appended_while_a_warehouse_is_maintained_is_neither_lost_nor_repeated(
    spark, warehouse, tmp_path
) -> None:
    parts = batches()
    make(spark, warehouse, parts[:3])
    seen = read_on(spark, warehouse, tmp_path / "stream")

    def ingest() -> None:
        for part in parts[3:]:
            add(spark, warehouse, [part])

    ingesting = threading.Thread(target=ingest)
    ingesting.start()
    printed = maintained(spark, warehouse, **NEVER)
    ingesting.join()
    printed += maintained(spark, warehouse, **NEVER)
    assert not [line for line in printed if "is left for the next run" in line]
    assert sum(row["commits"] for part in parts for row in part[OFFSET_COMMITS.name]) == commits(warehouse)
    assert texts(rebuilt(parts)) == silver_again(warehouse)
    seen += read_on(spark, warehouse, tmp_path / "stream")
    assert sum(len(part[OFFSET_COMMITS.name]) for part in parts) == seen


def test_a_commit_that_loses_against_another_is_made_again_while_others_wait(spark, warehouse, tmp_path) -> None:
    path, begun, go = f"{warehouse}/numbers", tmp_path / "begun", tmp_path / "go"
    spark.range(3).coalesce(1).write.format("delta").save(path)

    def slowly(parts, begun=str(begun), go=str(go)):
        import time
        from pathlib import Path

        Path(begun).touch()
        while not Path(go).exists():
            time.sleep(0.01)
        yield from parts

    attempts = []

    def rewrite() -> None:
        attempts.append(1)
        new = spark.range(10, 12).coalesce(1).mapInArrow(slowly, "id long")
        new.write.format("delta").mode("overwrite").option("replaceWhere", "id < 100").save(path)

    rewriting = threading.Thread(target=partial(retry_commit, path, rewrite))
    rewriting.start()
    while not begun.exists():
        assert rewriting.is_alive()
    spark.range(500, 501).coalesce(1).write.format("delta").mode("append").save(path)
    go.touch()
    rewriting.join()
    assert 2 == len(attempts)
    assert [10, 11, 500] == sorted(DeltaTable(path).to_pyarrow_table()["id"].to_pylist())


def test_who_writes_alone_keeps_all_others_waiting(tmp_path) -> None:
    path, order = f"{tmp_path}/numbers", []

    def other() -> None:
        with table_lock(path):
            order.append("other")

    with table_lock(path, alone=True):
        waiting = threading.Thread(target=other)
        waiting.start()
        waiting.join(0.2)
        order.append("alone")
    waiting.join()
    assert ["alone", "other"] == order


def test_hours_that_are_not_over_are_merged_later(spark, recorded) -> None:
    newest = newest_ms(recorded)
    assert (0, 0) == merge_runs(spark, recorded, now_ms=newest - 10 * HOUR_MS)
    before, after = merge_runs(spark, recorded, now_ms=newest + HOUR_MS + SETTLED_MS)
    assert 0 < after < before


def test_an_hour_taken_up_in_parts_becomes_the_same_rows(spark, recorded, monkeypatch) -> None:
    hour = newest_ms(recorded) // HOUR_MS * HOUR_MS
    covered = {(r["cluster"], r["log_epoch"], r["source_partition"]): 1 << 60 for r in rows(recorded, COVERAGE)}
    whole = merged_hour(recorded, hour, covered)
    monkeypatch.setattr("jobs.retention.merged_hour.AT_ONCE", 1)
    parts = merged_hour(recorded, hour, covered)
    assert whole[0] == parts[0] > parts[1].num_rows
    assert sorted(map(repr, whole[1].to_pylist())) == sorted(map(repr, parts[1].to_pylist()))


def test_rows_that_somebody_else_put_into_other_files_meanwhile_are_merged_the_next_time(
    spark, recorded, monkeypatch
) -> None:
    before, made = commits(recorded), DeltaTable(table_path(recorded, OFFSET_COMMITS))

    class Slow(WorkerProcess):
        def ask(self, *asked):
            found = merged_files(*asked)
            made.optimize.compact()
            return found

    with monkeypatch.context() as patched:
        patched.setattr("jobs.retention.merge_runs.WorkerProcess", Slow)
        (printed,) = (line for line in maintained(spark, recorded, **NEVER) if "merging runs" in line)
    assert "is left for the next run" in printed
    assert before == commits(recorded)
    assert any("rows merged into" in line for line in maintained(spark, recorded, **NEVER))
    assert before == commits(recorded)


UUID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})")
INSTANT = re.compile(r"\b1[78]\d{11}\b")
POSITIONS = {"from_offset", "to_offset", "source_offset", "first_offset", "last_offset"}
POSITIONS |= {"before_last_offset", "third_last_offset"}


AHEAD = 1_000_000


def of_group(bronze, group):
    """Return the rows of the group, with offsets so high that there is room for earlier ones."""
    found = {table.name: [row for row in bronze[table.name] if row["group_id"] == group] for table in INPUTS}
    found[COVERAGE.name] = bronze[COVERAGE.name]
    return {table: [ahead(row, AHEAD) for row in rows] for table, rows in found.items()}


def ahead(row, by):
    return row | {name: row[name] + by for name in POSITIONS & set(row) if row[name] is not None}


def earlier(bronze):
    """Return the same history long before, at earlier offsets and with other members."""

    def moved(value):
        if isinstance(value, datetime):
            return value - timedelta(days=OLD_DAYS)
        if isinstance(value, str):
            value = UUID.sub(r"\1-\3-\2", value)
            return INSTANT.sub(lambda found: str(int(found[0]) - OLD_DAYS * DAY_MS), value)
        return value

    return {
        table: [ahead({name: moved(value) for name, value in row.items()}, -AHEAD) for row in found]
        for table, found in bronze.items()
    }


def on_one_side(silver, border):
    """Return the rows whose timestamps all lie before or all after it, without stalls in progress, which get wider
    bounds.
    """
    return {
        table.name: sorted(
            repr(row)
            for row in silver[table.name]
            if 1 == len({value < border for value in row.values() if isinstance(value, datetime)})
            and not (table is STALLS and row["resumed_at_latest"] is None)
        )
        for table in SILVER
        if table is not GROUPS
    }


def test_build_and_rebuild_keep_silver_after_commits_and_lines_are_kept_no_longer(spark, warehouse) -> None:
    parts = [of_group(part, "imports-joiner") for part in batches(3)]
    old, late = [earlier(part) for part in parts], parts.pop()
    make(spark, warehouse, [*old, *parts])
    newest, settings = newest_ms(warehouse), Settings(warehouse=warehouse, quiet_ms=QUIET_MS)
    FolderTables(warehouse).append(
        JOB_RUNS, [whole({"job": "j", "run_id": "r", "told_at": at}, JOB_RUNS) for at in (1, newest)]
    )
    printed = maintained(spark, warehouse, now_ms=newest + DAY_MS, keep_commits_days=90, keep_bronze_days=90)
    assert 3 == len([line for line in printed if "older than 90 days deleted" in line]), printed
    assert 1 == len(rows(warehouse, JOB_RUNS))
    for table in INPUTS:
        kept = [*parts, *(old if table is COORDINATOR_RECORDS else [])]
        assert sum(row.get("commits", 1) for part in kept for row in part[table.name]) == sum(
            row.get("commits", 1) for row in rows(warehouse, table)
        )
    add(spark, warehouse, [late])
    new = {table: NewRows(table=table, few=arrow(table, late[table.name])) for table in INPUTS}
    rebuild_affected(spark, settings, affected_groups(new))
    border = min(row["record_at"] for row in parts[0][COORDINATOR_RECORDS.name])
    made = rebuilt([*old, *parts, late])
    described = {table.name: stored(made[table.name], table).to_pylist() for table in SILVER}
    expected = on_one_side(described, border)
    assert all(expected[table.name] for table in (GENERATIONS, GENERATION_MEMBERS, STALLS, REBALANCES, GROUP_EVENTS))
    for again in (False, True):
        if again:
            rebuild_all(spark, settings)
        assert {} == differing(expected, on_one_side({t.name: rows(warehouse, t) for t in SILVER}, border))


def test_silver_stays_if_polls_that_name_its_topics_are_deleted(tmp_path) -> None:
    assert settled_since(tmp_path, GENERATIONS) is None
    (tmp_path / "_kept").mkdir()
    (tmp_path / "_kept" / ADMIN_OBSERVATIONS.name).write_text(str(10 * DAY_MS))
    (tmp_path / "_kept" / OFFSET_COMMITS.name).write_text(str(12 * DAY_MS))
    assert 13 * DAY_MS == settled_since(tmp_path, GENERATIONS)
    assert 11 * DAY_MS == settled_since(tmp_path, REASSIGNMENTS)
    (tmp_path / "_kept" / OFFSET_COMMITS.name).unlink()
    assert 11 * DAY_MS == settled_since(tmp_path, GENERATIONS)


def test_rows_of_operations_are_kept_as_long_as_their_setting_says(spark, warehouse) -> None:
    result = whole({"table_name": "t", "rule": "r"}, QUALITY_RESULTS)
    FolderTables(warehouse).append(QUALITY_RESULTS, [result | {"checked_at": at * DAY_MS} for at in (1, 50, 100)])
    (printed, _) = maintained(spark, warehouse, now_ms=101 * DAY_MS, keep_operations_days=60)
    assert "1 row older than 60 days deleted" in printed
    assert [50, 100] == sorted(r["checked_at"].timestamp() * 1000 // DAY_MS for r in rows(warehouse, QUALITY_RESULTS))


def test_files_of_versions_that_a_reader_may_still_have_stay(recorded) -> None:
    FolderTables(recorded).append(GROUPS, rebuilt(batches())[GROUPS.name])
    pinned = DeltaTable(table_path(recorded, GROUPS))
    DeltaTable(table_path(recorded, GROUPS)).optimize.compact()
    begun = recorded / GROUPS.name / "part-of-a-commit-under-way.parquet"
    begun.touch()
    assert 0 == vacuum(recorded, GROUPS, 7.0).files
    assert begun.exists()
    assert pinned.to_pyarrow_table().num_rows > 0
    assert 3 == vacuum(recorded, GROUPS, 0.0).files
    assert len(rows(recorded, GROUPS)) > 0


def test_where_a_log_covers_hours_old_files_stay_for_six_hours(spark, recorded) -> None:
    hours = {"part-of-the-night.parquet": 7, "part-of-the-morning.parquet": 5}
    for name, age in hours.items():
        (recorded / GROUPS.name / name).touch()
        os.utime(recorded / GROUPS.name / name, (time.time() - age * 3_600,) * 2)
    maintained(spark, recorded, **NEVER)
    assert ["part-of-the-morning.parquet"] == [name for name in hours if (recorded / GROUPS.name / name).exists()]


def test_two_do_not_maintain_at_once_nor_erase_meanwhile(recorded, capsys) -> None:
    with acquire(recorded, "maintain"):
        for given in (["maintain", "--once"], ["erase", "--cluster", "kafka", "--group", "g"]):
            assert 2 == main([*given, "--warehouse", str(recorded)])
            assert "does the work of `maintain`" in capsys.readouterr().err


def test_a_warehouse_without_tables_is_one_sentence_and_exit_code_2(warehouse, capsys) -> None:
    assert 2 == main(["maintain", "--once", "--warehouse", str(warehouse)])
    assert "has no tables yet" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["keep_commits_days", "vacuum_days"])
def test_a_number_of_days_below_0_is_refused(key, tmp_path, capsys) -> None:
    (tmp_path / "regroup.toml").write_text(f"{key} = -1\n")
    assert 2 == main(["maintain", "--once", "--config", str(tmp_path / "regroup.toml")])
    assert key in capsys.readouterr().err
