"""`regroup copy`: every row arrives once, also after the copy was ended, and no other row is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

import jobs.copy_tables
from jobs.cli import main
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import claim, read
from jobs.tables.new_rows import NewRows
from pipelines.arrow_types import stored
from schemas.gold import ADVICE, MARKS
from schemas.operations import JOB_RUNS
from schemas.silver import GROUPS, STALLS
from tests.whole_rows import whole

KEY = {"cluster": "kafka", "group_id": "orders"}
STOP = {"incarnation": 0, "stopped_by_offset": 1, "name": "orders", "index": 0}
ROWS = {
    ADVICE: [whole(KEY | {"action": "static_membership", "as_of": 1, "settings": {"java": "a=1\nb=2"}}, ADVICE)],
    GROUPS: [whole(KEY | {"group_id": f"orders {n}"}, GROUPS) for n in range(3)],
    JOB_RUNS: [whole({"job": "build", "run_id": "one", "told_at": 1}, JOB_RUNS)],
    MARKS: [],
    # Of an earlier version: the bounds are in the wrong order.
    STALLS: [whole(KEY | STOP | {"resumed_at_earliest": 2, "resumed_at_latest": 1}, STALLS)],
}


@pytest.fixture
def source(tmp_path) -> Path:
    warehouse = tmp_path / "source"
    create_tables(None, warehouse, tuple(ROWS))
    for table, rows in ROWS.items():
        append(None, warehouse, NewRows(table=table, few=stored(rows, table)))
    claim(warehouse, "kafka", "an id")
    return warehouse


def copied(source: Path, target: Path, *more: str) -> int:
    return main(["copy", "--from", str(source), "--warehouse", str(target), *more])


def rows(spark, warehouse: Path, table) -> list[str]:
    return sorted(map(repr, read(spark, warehouse, table).select(*table.names).collect()))


def ended_then_copied(source: Path, target: Path, *more: str) -> None:
    """Copy three times: the first copy is ended as by a kill between the rows and the note of the second table."""
    with pytest.MonkeyPatch.context() as patch:
        compare, calls = jobs.copy_tables._content, []

        def ended(*given):
            calls.append(given)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return compare(*given)

        patch.setattr(jobs.copy_tables, "_content", ended)
        assert 130 == copied(source, target, *more)
    assert 0 == copied(source, target, *more)
    assert 0 == copied(source, target, *more)


def assert_equal(spark, source: Path, target: Path) -> None:
    assert {table: rows(spark, source, table) for table in ROWS} == {t: rows(spark, target, t) for t in ROWS}
    assert "an id" == (target / "_clusters" / "kafka").read_text(encoding="utf-8")


def test_every_row_arrives_once_though_the_copy_was_ended(spark, source, tmp_path, capsys) -> None:
    target = tmp_path / "states"
    ended_then_copied(source, target, "--tables", str(tmp_path / "tables"))
    assert_equal(spark, source, target)
    printed = capsys.readouterr().out
    assert "groups: 3 rows copied and compared" in printed
    assert "groups: was copied before" in printed


def test_tables_go_into_a_schema_and_back_into_a_folder(spark, source, tmp_path, capsys) -> None:
    """With a row of an earlier version that breaks a constraint: it is copied, and its table stays without."""
    spark.sql(f"CREATE SCHEMA copied LOCATION '{tmp_path}/schema'")
    try:
        states, folder = tmp_path / "states", tmp_path / "folder"
        ended_then_copied(source, states, "--tables", "spark_catalog.copied")
        assert_equal(spark, source, states)
        assert not list(states.glob("*/_delta_log"))
        printed = capsys.readouterr().out
        assert "stalls: 1 row copied and compared" in printed
        assert 1 == printed.count("stalls_bounds was not added to the table stalls, because 1 row breaks the rule")
        ended_then_copied(states, folder)
        assert_equal(spark, source, folder)
        assert {table.name for table in ROWS} == {log.parent.name for log in folder.glob("*/_delta_log")}
    finally:
        spark.sql("DROP SCHEMA copied CASCADE")


def test_a_table_with_other_rows_is_refused(spark, source, tmp_path, capsys) -> None:
    target = tmp_path / "target"
    create_tables(None, target, (GROUPS,))
    append(None, target, NewRows(table=GROUPS, few=stored(ROWS[GROUPS][:1], GROUPS)))
    assert 2 == copied(source, target)
    assert "The table groups in" in capsys.readouterr().err
    assert 1 == len(rows(spark, target, GROUPS))


def test_the_same_place_and_an_empty_one_are_refused(spark, source, tmp_path, capsys) -> None:
    assert 2 == copied(source, source)
    assert 2 == copied(tmp_path / "nothing", tmp_path / "target")
    printed = capsys.readouterr().err
    assert "have the same tables" in printed
    assert "has no tables to copy" in printed
