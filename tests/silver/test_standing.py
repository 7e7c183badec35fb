"""What a batch may replace is the same rows, whether DuckDB reads them for a few groups or Spark for many."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import jobs.standing
from jobs.delta_io import table_path
from jobs.standing import Standing
from pipelines.arrow_types import microseconds, row_type
from pipelines.silver.restarts import committing, restarts
from schemas.silver import GENERATION_MEMBERS, GROUPS, REBALANCES, SILVER, STALLS
from tests.silver.rebuilding import batches, silver_of


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Silver of a recorded churn: folder and rows."""
    folder = tmp_path_factory.mktemp("standing")
    rows = silver_of(batches("eager_churn"), "eager_churn")
    for table in SILVER:
        told = [microseconds(row, table) for row in rows[table.name]]
        stored = pa.Table.from_struct_array(pa.array(told, row_type(table)))
        write_deltalake(table_path(folder, table), stored)
    return folder, rows


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
        monkeypatch.setattr(jobs.standing, "PRUNED_GROUPS", most)
        standing = Standing(spark=spark, warehouse=folder, groups=groups)
        points = restarts(touched, standing.needed(REBALANCES), standing.needed(GROUPS)).toArrow()
        only = committing(touched, *(standing.needed(table) for table in (GROUPS, STALLS, GENERATION_MEMBERS)))
        found = {table.name: ordered(standing.replaced(table, points)) for table in SILVER}
        return found | {"points": ordered(points), "only": ordered(only.toArrow())}

    few, many = read(len(groups)), read(0)
    assert few == many
    assert sum(map(len, few.values())) > 0
