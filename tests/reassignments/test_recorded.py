"""A recorded run of six brokers with known truth: four reassignments, one cancelled, and one change of order."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict

import pytest

from jobs.replay import Capture, bronze_of, split
from jobs.silver.build_reassignments import rebuild_affected_reassignments, rebuild_all_reassignments
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from pipelines.arrow_types import row_type, timestamp_columns
from pipelines.reassignments.rows import reassignment_rows
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, COORDINATOR_EVENTS
from schemas.silver import REASSIGNMENT_TABLES
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import decoded

RECORDED = CAPTURES / "reassignment"


def rows(*sources: str) -> dict[str, list]:
    capture = Capture(RECORDED)
    (batch,) = split(capture, sources, 1, None)
    return reassignment_rows("kafka", *decoded(bronze_of(batch, "kafka", capture.meta)))


@pytest.mark.parametrize(
    ("sources", "start_ms", "end_ms"), [(("admin",), 1500, 1500), (("log",), 100, 100), (("log", "admin"), 100, 100)]
)
def test_every_reassignment_is_found_with_its_target_and_outcome_and_no_other(sources, start_ms, end_ms) -> None:
    with gzip.open(RECORDED / "truth" / "summary.json.gz", "rt") as file:
        truth = {each["partition"]: each for each in json.load(file)["reassignments"]}
    found = {row["partition"]: row for row in rows(*sources)["reassignments"]}
    assert 5 == len(rows(*sources)["reassignments"]) == len(truth)
    for partition, described in truth.items():
        row = found[partition]
        assert (described["target_replicas"], described["outcome"]) == (row["target_replicas"], row["state"])
        assert start_ms >= abs(row["started_at"] - described["submitted_ms"])
        assert end_ms >= abs(row["completed_at"] - described["settled_ms"])


def test_a_recording_without_reassignments_has_none() -> None:
    capture = Capture(CAPTURES / "rolling_restart")
    (batch,) = split(capture, ("log", "admin"), 1, None)
    described = reassignment_rows("kafka", *decoded(bronze_of(batch, "kafka", capture.meta)))
    assert {"reassignments": [], "reassignment_samples": []} == described


def test_batches_in_any_order_give_the_tables_of_the_whole(spark, warehouse) -> None:
    """Each batch rebuilds from a quiet time before it on and keeps the other rows; together these are the whole."""
    capture = Capture(RECORDED)
    create_tables(spark, warehouse, (*BRONZE, *REASSIGNMENT_TABLES))
    for batch in split(capture, ("log", "admin"), 3, seed=2):
        bronze = bronze_of(batch, "kafka", capture.meta)
        new = {}
        for table in (ADMIN_OBSERVATIONS, COORDINATOR_EVENTS):
            new[table] = NewRows.of(table, bronze[table.name])
            append(spark, warehouse, new[table])
        rebuild_affected_reassignments(spark, warehouse, new)
    expected = {name: sorted(map(repr, found)) for name, found in stored_as(rows("log", "admin")).items()}
    assert expected == stored(spark, warehouse)
    rebuild_all_reassignments(spark, warehouse)
    assert expected == stored(spark, warehouse)


def arrow(found: list, table):
    import pyarrow as pa

    return pa.Table.from_struct_array(pa.array(found, type=row_type(table)))


def stored_as(found: dict[str, list]) -> dict[str, list]:
    out = defaultdict(list)
    for table in REASSIGNMENT_TABLES:
        times = timestamp_columns(table)
        typed = [row | {t: row[t] * 1000 for t in times if row.get(t) is not None} for row in found[table.name]]
        out[table.name] = arrow(typed, table).to_pylist()
    return out


def stored(spark, warehouse) -> dict[str, list[str]]:
    return {
        table.name: sorted(
            map(repr, spark.read.format("delta").load(table_path(warehouse, table)).toArrow().to_pylist())
        )
        for table in REASSIGNMENT_TABLES
    }
