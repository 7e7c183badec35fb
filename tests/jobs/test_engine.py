"""DuckDB in jobs: every column of a table, whatever columns its files have, and private views."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import duckdb
import pyarrow.parquet as pq
import pytest

from jobs.tables import engine
from jobs.tables.engine import connect, show_files
from pipelines.arrow_types import schema_of, stored
from schemas.gold import MARKS
from tests.whole_rows import whole

AT = 1_800_000_000_000
ROW = whole({"cluster": "kafka", "marked_at": AT, "kind": "deploy", "text": "v2", "group_id": "orders"}, MARKS)


@pytest.fixture
def files(tmp_path) -> list[str]:
    """A file of an earlier Regroup, which lacks a column, and one of this."""
    whole, paths = stored([ROW], MARKS), [str(tmp_path / name) for name in ("earlier.parquet", "now.parquet")]
    pq.write_table(whole.drop_columns("group_id"), paths[0])
    pq.write_table(whole, paths[1])
    return paths


@pytest.mark.parametrize(
    ("of", "groups"),
    [([], []), ([0], [None]), ([1], ["orders"]), ([0, 1], [None, "orders"]), ([1, 0], [None, "orders"])],
)
def test_what_a_file_lacks_is_null(files, of, groups) -> None:
    with connect() as engine:
        show_files(engine, "marks", MARKS, [files[index] for index in of])
        found = engine.sql("FROM marks").to_arrow_table()
    assert found.cast(schema_of(MARKS)).column_names == list(MARKS.names)
    assert sorted(found["group_id"].to_pylist(), key=str) == groups
    assert set(found["marked_at"].to_pylist()) <= {datetime.fromtimestamp(AT / 1000, UTC)}


def test_one_who_asks_does_not_see_what_another_does(files) -> None:
    with connect() as one, connect() as other:
        show_files(one, "marks", MARKS, files)
        with pytest.raises(duckdb.CatalogException):
            other.sql("FROM marks")
        one.execute("CREATE TEMP TABLE mine AS FROM marks")
    with connect() as later, pytest.raises(duckdb.CatalogException):
        later.sql("FROM mine")


def test_a_new_instance_comes_when_the_old_one_has_seen_many_files_that_were_replaced(
    monkeypatch, files, tmp_path
) -> None:
    monkeypatch.setattr(engine, "_asked", engine._Asked())
    monkeypatch.setattr(engine, "KEPT_FILES", 1)
    monkeypatch.setattr(engine, "GONE_AFTER", 2)
    later = [str(tmp_path / f"later{n}.parquet") for n in range(6)]
    for path in later:
        shutil.copy(files[1], path)

    def ask(paths: list[str]) -> object:
        with connect() as connection:
            show_files(connection, "marks", MARKS, paths)
            assert len(connection.sql("FROM marks").fetchall()) == len(paths)
            return engine._instance()

    first = ask(files)
    assert [first] * 9 == [ask(files) for _ in range(9)], "the same files again and again"
    instances = [ask([path]) for path in later]
    assert instances[:2] == [first] * 2, "files of the last queries may still be current"
    assert instances[-1] is not first
    assert len({*map(id, instances)}) == 2, "but not for each question"


def test_a_new_instance_takes_over_while_the_old_one_still_answers(monkeypatch) -> None:
    monkeypatch.setattr(engine, "RENEWED_AFTER", 3)
    monkeypatch.setattr(engine, "GONE_AFTER", 1)
    with connect() as before:
        before.execute("CREATE TEMP TABLE mine AS SELECT 1 AS one")
        instances = set()
        for _ in range(4):
            with connect() as after:
                instances.add(engine._instance())
                assert ("UTC",) == after.sql("SELECT current_setting('TimeZone')").fetchall()[0]
        assert 1 < len(instances) < 4
        assert [(1,)] == before.sql("SELECT one FROM mine").fetchall()
