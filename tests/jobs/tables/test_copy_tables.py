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
from schemas.gold import ADVICE
from schemas.operations import JOB_RUNS
from schemas.silver import GROUPS, STALLS
from tests.whole_rows import whole

KEY = {"cluster": "kafka", "group_id": "orders"}
ROWS = {
    ADVICE: [whole(KEY | {"action": "static_membership", "as_of": 1, "settings": {"java": "a=1\nb=2"}}, ADVICE)],
    GROUPS: [whole(KEY | {"group_id": f"orders {n}"}, GROUPS) for n in range(3)],
    JOB_RUNS: [whole({"job": "build", "run_id": "one", "told_at": 1}, JOB_RUNS)],
}


@pytest.fixture
def source(tmp_path) -> Path:
    warehouse = tmp_path / "source"
    create_tables(None, warehouse, (*ROWS, STALLS))
    for table, rows in ROWS.items():
        append(None, warehouse, NewRows(table=table, few=stored(rows, table)))
    claim(warehouse, "kafka", "an id")
    return warehouse


def copied(source: Path, target: Path, *more: str) -> int:
    return main(["copy", "--from", str(source), "--warehouse", str(target), *more])


def rows(spark, warehouse: Path, table) -> list[str]:
    return sorted(map(repr, read(spark, warehouse, table).select(*table.names).collect()))


def test_every_row_arrives_once_though_the_copy_was_ended(spark, source, tmp_path, monkeypatch, capsys) -> None:
    target = tmp_path / "states"
    where = ("--tables", str(tmp_path / "tables"))
    with monkeypatch.context() as patch:
        # As a kill between the rows and the note of the second table.
        compare, calls = jobs.copy_tables._content, []

        def ended(*given):
            calls.append(given)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return compare(*given)

        patch.setattr(jobs.copy_tables, "_content", ended)
        assert 130 == copied(source, target, *where)
    assert 0 == copied(source, target, *where)
    assert 0 == copied(source, target, *where)
    assert {table: rows(spark, source, table) for table in ROWS} == {t: rows(spark, target, t) for t in ROWS}
    assert [] == rows(spark, target, STALLS)
    assert "an id" == (target / "_clusters" / "kafka").read_text(encoding="utf-8")
    printed = capsys.readouterr().out
    assert "groups: 3 rows copied and compared" in printed
    assert "groups: was copied before" in printed


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
