"""Failures of the lab's brokers and members, recorded: each is named with its evidence, and none of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from jobs.captures.recording import Capture
from jobs.gold.cluster_patterns import scan_clusters
from jobs.replay import CaptureRecords, Rows, bronze_of
from jobs.tables.delta_io import table_path
from pipelines.arrow_types import row_type, stored
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COORDINATOR_RECORDS
from schemas.silver import SILVER
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, silver_of

BRONZE = (ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COORDINATOR_RECORDS)


def patterns(warehouse: Path, name: str, sources: str) -> list[dict[str, Any]]:
    (batch,) = batches(name, sources=sources)
    bronze = bronze_of(batch, "kafka", Capture(CAPTURES / name).meta)
    for table in BRONZE:
        rows = pa.array(bronze[table.name], row_type(table))
        write_deltalake(table_path(warehouse, table), pa.Table.from_struct_array(rows))
    silver = cast("Rows", silver_of([CaptureRecords(records=batch.records, lines=batch.lines)], name))
    for table in SILVER:
        rows = [row | {"cluster": "kafka"} for row in silver.get(table.name, [])]
        write_deltalake(table_path(warehouse, table), stored(rows, table))
    return [dict(row) for row in scan_clusters(warehouse)]


def found(warehouse: Path, name: str, sources: str = "offsets,log,admin") -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["pattern"], row["subject"]): row for row in patterns(warehouse, name, sources)}


def test_the_members_that_a_stuck_rebalance_may_wait_for_are_named_with_its_end(tmp_path) -> None:
    """`quotes-sync-0` does not poll; `rates-sync-0` is frozen since an attempt that a newcomer ended."""
    rows = found(tmp_path, "stuck_members")
    assert {("stuck_rebalance", "quotes-sync"), ("stuck_rebalance", "rates-sync")} == rows.keys()
    blocked, frozen = rows["stuck_rebalance", "quotes-sync"], rows["stuck_rebalance", "rates-sync"]
    assert ["quotes-sync-0", "quotes-sync-2", "/127.0.0.1"] == blocked["instances"]
    assert ["rates-sync-0", "rates-sync-2"] == frozen["instances"]
    for row in (blocked, frozen):
        assert (["log", "topic"], "inferred", None) == (row["sources"], row["evidence"], row["ended_at"])
        assert "is in state PreparingRebalance" in row["explanation"]
        assert "1 new member joined and waits." in row["explanation"]
        assert "The rebalance timeout ends it at the latest: 5 min" in row["explanation"]


def test_polls_alone_show_a_stuck_rebalance_and_say_that_newcomers_are_not_known(tmp_path) -> None:
    rows = found(tmp_path, "stuck_members", "offsets,admin")
    assert {("stuck_rebalance", "quotes-sync"), ("stuck_rebalance", "rates-sync")} == rows.keys()
    for row in rows.values():
        assert ["poll", "topic"] == row["sources"]
        assert "without the coordinator's log, this is not known" in row["explanation"]


@pytest.mark.parametrize("sources", ["offsets", "offsets,log", "offsets,log,admin"])
def test_a_connect_leader_that_reads_another_configuration_topic_is_named(tmp_path, sources) -> None:
    """After a second, 38 generations; without the cut, there are 80 a second for as long as it leads."""
    rows = found(tmp_path, "connect_mismatch", sources)
    assert {("connect_config_mismatch", "branch-connect")} == rows.keys()
    (row,) = rows.values()
    assert (38, ["branch-connect-0"], "observed", None) == (
        row["times"], row["instances"], row["evidence"], row["ended_at"],
    )  # fmt: skip
    assert "at offset 13; read so far: branch-connect-0 (the leader) up to 1." in row["explanation"]
