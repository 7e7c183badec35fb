"""The table `cluster_patterns`: made again as a whole, written only where it differs, the same in any batching."""

from __future__ import annotations

from deltalake import DeltaTable

from jobs.gold.cluster_patterns import scan_clusters, update_cluster_patterns
from jobs.gold.storm_thread import found_as_of
from jobs.tables.as_of import versions
from jobs.tables.paths import table_path
from schemas.bronze import COORDINATOR_EVENTS
from schemas.gold import CLUSTER_PATTERNS, MARKS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS
from testing.alerts.rows import MINUTE, NOW, write
from tests.gold.patterns.clusters import DOWN, ClusterRows


def described(warehouse) -> ClusterRows:
    described = ClusterRows(warehouse)
    described.group("orders", DOWN, state="PreparingRebalance", open_rebalance_since_at=NOW - 20 * MINUTE)
    described.line(
        NOW - 20 * MINUTE, "preparing", group_id="orders", trigger="member_joined", reason="Adding new member x"
    )
    described.line(NOW - 15 * MINUTE, "coordinator_load_failed", source_partition=DOWN, reason="why")
    return described


def test_nothing_is_written_where_nothing_changed_and_what_is_over_goes(spark, tmp_path) -> None:
    cluster = described(tmp_path)
    found = cluster.found()
    assert ["offsets_partition_down", "stuck_rebalance"] == [row["pattern"] for row in found]
    update_cluster_patterns(spark, tmp_path)
    table = DeltaTable(table_path(tmp_path, CLUSTER_PATTERNS))
    version = table.version()
    update_cluster_patterns(spark, tmp_path)
    table.update_incremental()
    assert version == table.version()
    cluster.rows[GROUPS][0] |= {"open_rebalance_since_at": None, "state": "Stable"}
    cluster.found()
    update_cluster_patterns(spark, tmp_path)
    table.update_incremental()
    assert ["offsets_partition_down"] == table.to_pyarrow_table()["pattern"].to_pylist()


def test_rows_do_not_depend_on_batches(tmp_path) -> None:
    whole, parts = described(tmp_path / "whole"), tmp_path / "parts"
    found = whole.found()
    for table, rows in whole.rows.items():
        for row in reversed(rows):
            write(parts, table, [row], mode="append")
    assert found == [dict(row) for row in scan_clusters(parts)]


def test_within_up_silver_is_read_in_the_versions_between_two_batches(tmp_path) -> None:
    cluster = described(tmp_path)
    cluster.found()
    write(tmp_path, MARKS, [])
    seen = versions(tmp_path, (GROUPS, GENERATIONS, GENERATION_MEMBERS, MARKS))
    write(tmp_path, GROUPS, [])
    found = found_as_of(tmp_path, seen, CLUSTER_PATTERNS.name)
    assert ["offsets_partition_down", "stuck_rebalance"] == [row["pattern"] for row in found]
    assert COORDINATOR_EVENTS in cluster.rows


def test_a_warehouse_without_tables_has_no_pattern(tmp_path) -> None:
    assert [] == scan_clusters(tmp_path)
