"""What a batch may replace is the same rows, whether DuckDB reads them for a few groups or Spark for many."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import jobs.standing
from jobs.delta_io import table_path
from jobs.replay import Capture, bronze_of
from jobs.standing import Standing
from pipelines.arrow_types import microseconds, row_type
from pipelines.silver.frame import INPUTS, RAW
from pipelines.silver.restarts import committing, restarts
from schemas.silver import GENERATION_MEMBERS, GROUPS, REBALANCES, SILVER, STALLS
from tests.silver.rebuilding import CAPTURES, batches, silver_of


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Bronze and silver of a recorded churn, several files of each: folder and silver's rows."""
    folder, given = tmp_path_factory.mktemp("standing"), batches("eager_churn", count=4)
    rows = silver_of(given, "eager_churn")
    for table in SILVER:
        write(folder, table, [microseconds(row, table) for row in rows[table.name]])
    for batch in given:
        bronze = bronze_of(batch, "kafka", Capture(CAPTURES / "eager_churn").meta)
        for table in INPUTS.values():
            write(folder, table, bronze[table.name])
    return folder, rows


def write(folder, table, rows) -> None:
    stored = pa.Table.from_struct_array(pa.array(rows, row_type(table)))
    write_deltalake(table_path(folder, table), stored, mode="append")


def ordered(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_few_and_many_groups_give_the_same_rows(spark, stored, monkeypatch, share) -> None:
    folder, rows = stored
    groups = [(row["cluster"], row["group_id"]) for row in rows["groups"]]
    times = sorted(row["joined_at"] for row in rows["generations"])
    since = datetime.fromtimestamp(times[int(len(times) * share)] / 1000, UTC)
    told = [(*group, since, since, [("none", 0)]) for group in groups]
    kinds = "cluster STRING, group_id STRING, since_at TIMESTAMP, last_commit_at TIMESTAMP, "
    touched = spark.createDataFrame(told, kinds + "committed ARRAY<STRUCT<name: STRING, index: INT>>")

    def read(most: int) -> dict[str, list[str]]:
        monkeypatch.setattr(jobs.standing, "FEW_GROUPS", most)
        standing = Standing(spark=spark, warehouse=folder, groups=groups)
        points = restarts(touched, standing.needed(REBALANCES), standing.needed(GROUPS)).toArrow()
        only = committing(touched, *(standing.needed(table) for table in (GROUPS, STALLS, GENERATION_MEMBERS)))
        found = {table.name: ordered(standing.replaced(table, points)) for table in SILVER}
        for table in INPUTS.values():
            needed = standing.history(table, points)
            found[table.name] = ordered(needed.select(*(n for n in table.names if n not in RAW)).toArrow())
        return found | {"points": ordered(points), "only": ordered(only.toArrow())}

    few, many = read(len(groups)), read(0)
    assert few == many
    assert sum(map(len, few.values())) > 0
    monkeypatch.setattr(jobs.standing, "FEW_ROWS", 0)
    assert read(len(groups)) == many, "a long history does not go through the driver"
