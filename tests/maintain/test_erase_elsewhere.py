"""After an erase, tables that only Spark finds have the same rows as those in a folder, however often it was ended."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

import jobs.erase
from jobs.cli import _bind_tables
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.erase import erase
from jobs.gold.analyze_part import analysed_path
from jobs.retention.erased_name import Name
from jobs.retention.tidy import RETENTION
from jobs.silver.staging import STAGING, StagedRows
from jobs.tables import named_tables
from jobs.tables.append import append_frame
from jobs.tables.delta_io import checkpoint_path, read
from jobs.tables.location import bind
from jobs.tables.paths import TableName, table_path
from schemas.bronze import COORDINATOR_RECORDS
from schemas.gold import STORMS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS
from schemas.tables import Table
from tests.maintain.conftest import CLUSTER, contents, rows
from tests.maintain.test_maintain import read_on

TABLES = (COORDINATOR_RECORDS, GENERATIONS, STORMS)


class EndedError(Exception):
    """Represents the end of the process."""


@pytest.fixture
def elsewhere(spark, described, tmp_path) -> Iterator[Path]:
    """A folder of states, whose tables are in a schema. In one of them, a deleted row stays in its file."""
    folder, _ = described
    states = tmp_path / "states"
    spark.sql(f"CREATE SCHEMA erasing LOCATION '{tmp_path}/schema'")
    for table in TABLES:
        spark.sql(f"CREATE TABLE erasing.{table.name} USING delta LOCATION '{folder}/{table.name}'")
    spark.sql("ALTER TABLE erasing.generations SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    bind(states, "spark_catalog.erasing")
    StagedRows.write(spark, states, read(spark, states, GENERATIONS).select(F.struct("*").alias("generations")))
    analysed_path(states).parent.mkdir(parents=True)
    analysed_path(states).write_text("groups", encoding="utf-8")
    yield states
    spark.sql("DROP SCHEMA erasing CASCADE")


def named(warehouse: Path, table: Table) -> TableName:
    return TableName(table_path(warehouse, table))


def others(spark, warehouse: Path, table: Table, group: str) -> list[str]:
    rows = read(spark, warehouse, table).select(*table.names).collect()
    return sorted(repr(row) for row in rows if group not in repr(row))


def ends_at(call: int, act):
    """`act`, which ends the process instead of the call of this number."""
    calls = []

    def act_or_end(*given, **more):
        calls.append(given)
        if len(calls) == call:
            raise EndedError
        return act(*given, **more)

    return act_or_end


def test_a_group_is_in_no_file_any_more_though_the_erasure_was_ended_or_refused(
    spark, described, elsewhere, tmp_path, monkeypatch, capsys
) -> None:
    folder, group = described
    name = Name.of(CLUSTER, group=group, host=None)
    standing = {table: others(spark, elsewhere, table, group) for table in TABLES}
    stream, late = (checkpoint_path(elsewhere, job) for job in ("stream", "late"))
    read_on(spark, elsewhere, late, COORDINATOR_RECORDS)
    unread = read(spark, elsewhere, COORDINATOR_RECORDS).where(F.col("group_id") == group).limit(1)
    append_frame(unread, elsewhere, COORDINATOR_RECORDS)
    assert 0 < read_on(spark, elsewhere, stream, COORDINATOR_RECORDS)

    # The erase is ended between two tables, and then continued without the removal of old files.
    with monkeypatch.context() as patch:
        patch.setattr(jobs.erase, "commit_by_spark", ends_at(2, jobs.erase.commit_by_spark))
        with pytest.raises(EndedError):
            erase(spark, elsewhere, name, vacuum_days=7.0)
    receipt = erase(spark, elsewhere, name, vacuum_days=7.0)
    done = {each["table"]: each for each in receipt["tables"]}
    assert {GENERATIONS.name, STORMS.name} == done.keys() - {COORDINATOR_RECORDS.name, STAGING.name}
    assert done["generations"]["rows_deleted"] > 0 == done["generations"]["old_files_removed"]
    assert (0, 1) == (done["storms"]["rows_deleted"], done["storms"]["rows_changed"])
    assert done["generations"]["version_before"] < done["generations"]["version"]
    assert ([], {}) == (receipt["still_named_in"], receipt["old_files_not_removed"])

    # Refused for some tables, as Unity Catalog may.
    removed = jobs.erase.remove_old_files

    def refused(warehouse, table, *given):
        if table is not STORMS:
            raise PySparkException("not allowed")
        return removed(warehouse, table, *given)

    settings = Settings(warehouse=elsewhere)
    asked = Namespace(cluster=CLUSTER, group=group, host=None, now=True)
    _bind_tables(settings, "erase")
    sentence = r"old files of coordinator_records, generations, rebuilt_rows still may, .* \(not allowed\)"
    with monkeypatch.context() as patch:
        patch.setattr(jobs.erase, "remove_old_files", refused)
        with pytest.raises(UserError, match=sentence):
            jobs.erase.run(settings, asked)
    printed = capsys.readouterr().out
    assert '"generations": "not allowed"' in printed
    assert "late: bronze will be read from its beginning" in printed
    assert (True, False) == (stream.exists(), late.exists())

    # As a kill within the removal leaves it.
    spark.sql(f"ALTER TABLE {named(elsewhere, STORMS)} SET TBLPROPERTIES ('{RETENTION}' = 'interval 0 hours')")
    erase(spark, elsewhere, name, vacuum_days=0.0)
    files = {n: text for t in TABLES for n, text in contents(folder / t.name)} | dict(contents(tmp_path / "schema"))
    assert any(each.endswith(".parquet") for each in files)
    assert [] == [each for each, text in files.items() if group in text]
    for table in (COORDINATOR_RECORDS, GENERATIONS):
        assert standing[table] == others(spark, elsewhere, table, group)
    (both,) = read(spark, elsewhere, STORMS).collect()
    assert both["group_ids"] == [name.mark, "other-group"]
    assert 0 == read(spark, elsewhere, STAGING).count()
    assert not analysed_path(elsewhere).exists()
    assert "interval 168 hours" == named_tables.properties(named(elsewhere, COORDINATOR_RECORDS))[RETENTION]
    assert RETENTION not in named_tables.properties(named(elsewhere, STORMS))
    assert 0 == read_on(spark, elsewhere, stream, COORDINATOR_RECORDS), "the stream reads on"


def test_a_host_is_in_no_file_any_more_and_no_row_is_lost(spark, described, elsewhere, tmp_path) -> None:
    folder, _ = described
    host = next(row["client_host"] for row in rows(folder, GENERATION_MEMBERS))
    name = Name.of(CLUSTER, group=None, host=host)

    def named_in() -> list[str]:
        places = (*(folder / table.name for table in TABLES), tmp_path / "schema")
        return [file for place in places for file, text in contents(place) if name.text in text]

    assert named_in()
    before = {table: read(spark, elsewhere, table).count() for table in TABLES}
    receipt = erase(spark, elsewhere, name, vacuum_days=0.0)
    assert ([], {}) == (receipt["still_named_in"], receipt["old_files_not_removed"])
    assert [] == named_in()
    assert before == {table: read(spark, elsewhere, table).count() for table in TABLES}
    values = read(spark, elsewhere, COORDINATOR_RECORDS).select("raw_value").collect()
    assert any(name.mark.encode() in row["raw_value"] for row in values if row["raw_value"] is not None)
