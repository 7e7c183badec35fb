"""Silver of pruned commits equals silver of all commits, and most commits are left out if batches were small."""

from __future__ import annotations

from itertools import chain

import pyarrow as pa
import pytest

from jobs.replay import Capture, bronze_of
from jobs.silver.silver_tasks import Making
from pipelines.arrow_types import row_type
from pipelines.silver.commits.pruned_commits import pruned_commits
from pipelines.silver.frame import INPUTS
from pipelines.silver.rows import KEPT
from schemas.silver import SILVER
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches

NAMES = sorted(path.name for path in CAPTURES.iterdir() if (path / "offsets.parquet").exists())
NO_POINTS = pa.table({"base_offset": pa.array([], pa.int64())})


@pytest.mark.parametrize("name", NAMES)
def test_silver_is_the_same_of_fewer_commits(name) -> None:
    meta = Capture(CAPTURES / name).meta
    bronze = [bronze_of(batch, "kafka", meta) for batch in batches(name, count=60)]
    history = {
        side: pa.Table.from_struct_array(
            pa.array(list(chain.from_iterable(rows.get(table.name, []) for rows in bronze)), row_type(table))
        )
        for side, table in INPUTS.items()
    }
    making = Making(quiet_ms=30_000, hosts=KEPT, topic_names={})
    fewer = pruned_commits(history["run"], history["record"])
    assert fewer.num_rows < history["run"].num_rows or not fewer.num_rows
    whole, thin = (making.rows(history | {"run": runs}, NO_POINTS) for runs in (history["run"], fewer))
    assert sum(rows.num_rows for rows in whole.values()) > 0
    for table in SILVER:
        found, expected = (sorted(map(repr, side[table].to_pylist())) for side in (thin, whole))
        assert found == expected, table.name
