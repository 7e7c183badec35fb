"""Gold where Spark keeps the tables: the storms of a folder, and parts with few rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from jobs.config.settings import Settings
from jobs.gold import storm_silver
from jobs.gold.bounded_part import EACH, fitting
from jobs.gold.storm_silver import silver_of_storms
from jobs.gold.storms import update_storms
from jobs.tables.delta_io import read
from jobs.tables.location import bind
from pipelines.gold.storms.disturbances import Disturbance
from pipelines.gold.storms.storms import Storm
from schemas.gold import STORMS
from schemas.silver import GENERATIONS, GROUPS
from schemas.states import StormScope
from tests.gold.simulated import HOUR, MINUTE, SECOND, START, group, groups_table, tables
from tests.gold.test_storm_tables import stormy


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    bind(tmp_path / "states", str(tmp_path / "tables"))
    return tmp_path / "states"


def go_on(folder: Path, since: int, until: int) -> None:
    """Write the silver rows of the simulated groups between two times, as files that Spark and DuckDB read."""
    late = group("late")
    for ref in range(10):
        late.do(START + HOUR + ref * 6 * MINUTE, "poll_timeout", 1, 5 * SECOND)
    groups = [*stormy(), late]
    for table, rows in tables(groups, since=since, until=until).items():
        write_deltalake(str(folder / table.name), rows, mode="append")
    write_deltalake(str(folder / GROUPS.name), groups_table(groups, until), mode="overwrite")


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 100_000])
def test_spark_finds_the_storms_that_are_found_in_a_folder(spark, elsewhere, tmp_path, monkeypatch, at_once) -> None:
    """Of two groups and of the fleet, at first in all rows and then in those that came."""
    monkeypatch.setattr(storm_silver, "READ_AT_ONCE", at_once)
    folder, before = tmp_path / "folder", 0
    for until in (START + 20 * MINUTE, START + 3 * HOUR):
        found = []
        for warehouse, files in ((folder, folder), (elsewhere, tmp_path / "tables")):
            go_on(files, before, until)
            update_storms(spark, Settings(warehouse=warehouse))
            found.append(sorted(map(repr, read(spark, warehouse, STORMS).select(*STORMS.names).collect())))
        assert found[0] == found[1]
        before = until
    assert ["fleet", "group", "group"] == sorted(row["scope"] for row in read(spark, elsewhere, STORMS).collect())


def test_storms_of_one_group_are_read_together_up_to_a_limit(elsewhere, monkeypatch) -> None:
    """A storm of several groups is read alone."""

    def storm(begin: int, groups: str, scope: StormScope = StormScope.GROUP) -> Storm:
        many = [Disturbance(group_id=name, at=begin, known_at=begin) for name in groups]
        return Storm(
            cluster="c", scope=scope, disturbances=many, detected_at=begin, last_at=begin, needed=1, window_ms=1,
            expected_per_day=1.0, group_ids=set(groups),
        )  # fmt: skip

    monkeypatch.setattr(storm_silver, "READ_AT_ONCE", 5)
    monkeypatch.setattr(storm_silver, "_counts", lambda *_: {"a": 3, "b": 2, "c": 1, "d": 9})
    monkeypatch.setattr(storm_silver, "_read", lambda *_: {GENERATIONS: pa.table({})})
    first, second, again, third, large = (storm(at, name) for at, name in enumerate("abacd"))
    fleet, other = storm(2, "abc", StormScope.FLEET), storm(9, "ac", StormScope.FLEET)
    found = list(silver_of_storms(elsewhere, [large, third, fleet, first, again, other, second]))
    assert [[fleet], [other], [first, second, again], [third], [large]] == [part for part, _ in found]
    assert [False, False, True, True, True] == [bool(silver.rows) for _, silver in found]


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
