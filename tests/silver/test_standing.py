"""What a batch may replace is the same rows, whether DuckDB reads them for a few groups or Spark for many."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import jobs.standing
from jobs.delta_io import table_path
from jobs.replay import Capture, bronze_of
from jobs.standing import Frames, Standing
from pipelines.arrow_types import microseconds, row_type
from pipelines.silver.frame import INPUTS, RAW
from pipelines.silver.touched import TOUCHED
from schemas.silver import SILVER
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


GROUPS_TOUCHED = pa.schema([field for field in TOUCHED if field.name != "topic_ids"])


@pytest.mark.parametrize(("share", "committed"), [(0.0, "nothing"), (0.5, "unknown"), (0.9, "all"), (1.0, "all")])
def test_few_and_many_groups_give_the_same_rows(spark, stored, monkeypatch, share, committed) -> None:
    folder, rows = stored
    groups = [(row["cluster"], row["group_id"]) for row in rows["groups"]]
    times = sorted(row["joined_at"] for row in rows["generations"])
    # The last begins after everything.
    times.append(times[-1] + 3_600_000)
    since = datetime.fromtimestamp(times[int((len(times) - 1) * share)] / 1000, UTC)
    owned = {(row["name"], row["index"]) for row in rows["stalls"]}
    resources = {"nothing": [], "unknown": [("none", 0)], "all": owned}[committed]
    now = {
        "since_at": since,
        "last_commit_at": since,
        "committed": [dict(zip(("name", "index"), r, strict=True)) for r in resources],
    }
    told = [{"cluster": cluster, "group_id": group, **now} for cluster, group in groups]
    touched = pa.Table.from_pylist(told, GROUPS_TOUCHED)

    def read(most: int) -> dict[str, list[str]]:
        monkeypatch.setattr(jobs.standing, "FEW_GROUPS", most)
        standing = Standing(spark=spark, warehouse=folder, touched=touched)
        points = standing.restarts()
        old, new = standing.committing()
        found = {table.name: ordered(standing.replaced(table, points)) for table in SILVER}
        history = standing.history(points)
        if isinstance(history, Frames):
            history = dict(zip(INPUTS, (frame.toArrow() for frame in history), strict=True))
        for name, rows in history.items():
            found[name] = ordered(rows.select([n for n in INPUTS[name].names if n not in RAW]))
        return found | {"points": ordered(points), "old": ordered(old), "new": ordered(new)}

    few, many = read(len(groups)), read(0)
    assert few == many
    assert sum(map(len, few.values())) > 0
    assert few["new"] or share < 1.0, "after everything a commit changes nothing else"
    monkeypatch.setattr(jobs.standing, "FEW_ROWS", 0)
    assert read(len(groups)) == many, "a long history does not go through the driver"
