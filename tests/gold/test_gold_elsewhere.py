"""Gold where Spark keeps the tables: the storms of a folder, and parts with few rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from jobs.config.settings import Settings
from jobs.gold.bounded_part import EACH, fitting
from jobs.gold.storms import update_storms
from jobs.tables.delta_io import read
from jobs.tables.location import bind
from schemas.gold import STORMS
from schemas.silver import GENERATIONS, GROUPS
from tests.gold.simulated import HOUR, MINUTE, START, groups_table, tables
from tests.gold.test_storm_tables import stormy


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    bind(tmp_path / "states", str(tmp_path / "tables"))
    return tmp_path / "states"


def go_on(folder: Path, since: int, until: int) -> None:
    """Write the silver rows of the simulated groups between two times, as files that Spark and DuckDB read."""
    groups = stormy()
    for table, rows in tables(groups, since=since, until=until).items():
        write_deltalake(str(folder / table.name), rows, mode="append")
    write_deltalake(str(folder / GROUPS.name), groups_table(groups, until), mode="overwrite")


@pytest.mark.slow
def test_spark_finds_the_storms_that_are_found_in_a_folder(spark, elsewhere, tmp_path) -> None:
    """Of a group and of the fleet, at first in all rows and then in those that came."""
    folder, before = tmp_path / "folder", 0
    for until in (START + 20 * MINUTE, START + 3 * HOUR):
        found = []
        for warehouse, files in ((folder, folder), (elsewhere, tmp_path / "tables")):
            go_on(files, before, until)
            update_storms(spark, Settings(warehouse=warehouse))
            found.append(sorted(map(repr, read(spark, warehouse, STORMS).select(*STORMS.names).collect())))
        assert found[0] == found[1]
        before = until
    assert ["fleet", "group"] == sorted(row["scope"] for row in read(spark, elsewhere, STORMS).collect())


def test_a_part_has_the_first_groups_whose_rows_fit_and_at_least_one(spark, elsewhere, tmp_path) -> None:
    go_on(tmp_path / "tables", 0, START + 3 * HOUR)
    rows = read(spark, elsewhere, GENERATIONS).groupBy("group_id").count().toArrow()
    counts = {row["group_id"]: row["count"] for row in rows.to_pylist()}
    (cluster,) = pa.compute.unique(read(spark, elsewhere, GENERATIONS).select("cluster").toArrow()["cluster"])
    scope = {(cluster.as_py(), name): 0 for name in sorted(counts)}
    first, second, third = (EACH + counts[name] for _, name in list(scope)[:3])

    def fitted(most: int) -> int:
        found = fitting(spark, elsewhere, scope, most)
        assert list(scope)[: len(found)] == list(found)
        assert found == fitting(None, tmp_path / "tables", scope, most), "the same tables, in a folder"
        return len(found)

    assert [1, 1, 2, 3] == [fitted(most) for most in (EACH, first, first + second, first + second + third)]
    assert len(scope) == fitted(10**6)
    assert 1 < EACH < first
