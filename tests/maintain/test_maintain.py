"""The maintain job on real tables: what it makes smaller, what it leaves alone, who may write beside it."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs import merge_runs
from jobs.build import rebuild_all
from jobs.cli import main
from jobs.delta_io import follow, read, table_path
from jobs.maintain import Maintenance
from jobs.merge_runs import HOUR_MS, SETTLED_MS
from jobs.retention import DAY_MS
from jobs.settings import Settings
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.silver import GENERATIONS, GROUPS
from tests.jobs.conftest import differing, silver

NEVER = {"keep_commits_days": 0, "keep_bronze_days": 0}


def maintained(spark, warehouse, *, now_ms=None, **settings) -> list[str]:
    said: list[str] = []
    told = Settings(warehouse=warehouse, **settings)
    Maintenance(spark=spark, settings=told, say=said.append).round(now_ms)
    return said


def files(warehouse, table) -> list[str]:
    return DeltaTable(table_path(warehouse, table)).file_uris()


def newest_ms(spark, warehouse) -> int:
    return read(spark, warehouse, OFFSET_COMMITS).agg(F.unix_millis(F.max("last_commit_at"))).first()[0]


def read_on(spark, warehouse, folder) -> int:
    """Rows of `offset_commits` that a stream which was there before has not seen yet."""
    seen = []
    rows = follow(spark, warehouse, OFFSET_COMMITS).writeStream.foreachBatch(
        lambda batch, _: seen.append(batch.count())
    )
    rows.option("checkpointLocation", str(folder)).trigger(availableNow=True).start().awaitTermination()
    return sum(seen)


def test_maintenance_leaves_fewer_rows_and_files_the_same_silver_and_nothing_new_for_a_stream(
    spark, recorded, tmp_path
) -> None:
    before, standing = read(spark, recorded, OFFSET_COMMITS).count(), silver(recorded)
    assert before == read_on(spark, recorded, tmp_path / "stream")
    said = maintained(spark, recorded, vacuum_days=0.0, **NEVER)
    after = read(spark, recorded, OFFSET_COMMITS)
    assert after.count() < before
    assert any("runs merged" in line and "old files removed" in line for line in said), said
    assert all(len(files(recorded, table)) <= 4 for table in (OFFSET_COMMITS, COORDINATOR_RECORDS, GENERATIONS, GROUPS))
    assert 0 == read_on(spark, recorded, tmp_path / "stream")
    rebuild_all(spark, recorded, Settings().quiet_ms)
    assert {} == differing(standing, silver(recorded))
    again = maintained(spark, recorded, vacuum_days=7.0, **NEVER)
    assert not any("merged" in line for line in again)


def test_what_a_batch_appends_while_runs_are_merged_is_not_lost(spark, recorded, monkeypatch) -> None:
    rows = read(spark, recorded, OFFSET_COMMITS)
    far = F.lit(10**9).cast("long")
    newest = rows.orderBy(F.col("last_offset").desc()).limit(1)
    late = newest.withColumns({"first_offset": far, "last_offset": far}).toArrow()
    merged = merge_runs.merged

    def meanwhile(*given):
        spark.createDataFrame(late).write.format("delta").mode("append").save(table_path(recorded, OFFSET_COMMITS))
        return merged(*given)

    monkeypatch.setattr(merge_runs, "merged", meanwhile)
    before, after = merge_runs.merge_runs(spark, recorded)
    assert after < before
    assert read(spark, recorded, OFFSET_COMMITS).where(F.col("first_offset") == 10**9).count() > 0


def test_hours_that_are_not_over_are_merged_later(spark, recorded) -> None:
    newest = newest_ms(spark, recorded)
    assert (0, 0) == merge_runs.merge_runs(spark, recorded, now_ms=newest - 10 * HOUR_MS)
    before, after = merge_runs.merge_runs(spark, recorded, now_ms=newest + HOUR_MS + SETTLED_MS)
    assert 0 < after < before


def test_a_rebuild_keeps_silver_rows_whose_commits_and_lines_are_kept_no_longer(spark, recorded) -> None:
    standing, newest = silver(recorded), newest_ms(spark, recorded)
    said = maintained(spark, recorded, now_ms=newest + 92 * DAY_MS, keep_commits_days=90, keep_bronze_days=90)
    assert any("older than 90 days deleted" in line for line in said)
    assert 0 == read(spark, recorded, OFFSET_COMMITS).count() == read(spark, recorded, COORDINATOR_EVENTS).count()
    assert 0 < read(spark, recorded, COORDINATOR_RECORDS).count()
    rebuild_all(spark, recorded, Settings().quiet_ms)
    over = {name: [row for row in rows if is_over(name, row)] for name, rows in standing.items()}
    assert {} == {name: missing for name, rows in over.items() if (missing := set(rows) - set(silver(recorded)[name]))}
    assert all(len(standing[name]) == len(rows) for name, rows in silver(recorded).items())


def is_over(name: str, row: str) -> bool:
    """Rows that may still change say so by what they lack."""
    lacks = {"generations": "'outcome': 'open'", "generation_members": "'valid_to_at': None"}
    lacks |= {"stalls": "'resumed_at_latest': None", "rebalances": "'ended_at': None"}
    return lacks.get(name, "never") not in row


def test_a_warehouse_without_tables_is_one_sentence_and_exit_code_2(warehouse, capsys) -> None:
    assert 2 == main(["maintain", "--once", "--warehouse", str(warehouse)])
    assert "has no tables yet" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["keep_commits_days", "vacuum_days"])
def test_a_number_of_days_below_0_is_refused(key, tmp_path, capsys) -> None:
    (tmp_path / "regroup.toml").write_text(f"{key} = -1\n")
    assert 2 == main(["maintain", "--once", "--config", str(tmp_path / "regroup.toml")])
    assert key in capsys.readouterr().err
