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
from jobs.tables.paths import table_path
from pipelines.arrow_types import row_type, stored
from pipelines.gold.alerts.alert import AlertLimits, Facts
from pipelines.gold.alerts.freshness import Freshness
from pipelines.gold.alerts.rules import evaluate
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


def test_a_leader_that_hangs_before_it_assigns_is_named(tmp_path) -> None:
    """`dues-sync-0` is frozen while it waits; then the other member leaves, and the join phase ends."""
    rows = found(tmp_path, "stuck_leader")
    assert {("stuck_rebalance", "dues-sync")} == rows.keys()
    (row,) = rows.values()
    assert (["dues-sync-0"], ["log", "topic"], "inferred") == (row["instances"], row["sources"], row["evidence"])
    assert "It waits for its leader, dues-sync-0 (the first that joined), to send the assignment." in row["explanation"]


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
    # The recording is cut after some seconds; the loop went on.
    seen = row | {"last_at": row["started_at"] + 90_000}
    fresh = Freshness(known_until_ms=seen["last_at"], is_fresh=True)
    facts = Facts(cluster="kafka", now_ms=seen["last_at"], freshness=fresh, patterns=[seen])
    (alert,) = evaluate(facts, AlertLimits(stuck_ms=360_000, stale_ms=90_000, availability=0.999)).alerts
    assert ("KafkaConnectConfigMismatch", "branch-connect", "page") == (alert.name, alert.subject, alert.severity)
    assert row["explanation"] in alert.description


def test_a_member_that_does_not_look_for_the_new_coordinator_is_named_for_its_group_only(tmp_path) -> None:
    """One member of each group hangs, but only one group's coordinator is killed."""
    rows = found(tmp_path, "lost_coordinator")
    assert {("coordinator_not_found", "meters-a")} == rows.keys()
    (row,) = rows.values()
    assert (["meters-a-0", "/127.0.0.1"], "inferred", ["log", "topic"]) == (
        row["instances"], row["evidence"], row["sources"],
    )  # fmt: skip
    assert "1 member (meters-a-0) sent nothing to it and was expelled 30 s later" in row["explanation"]


def test_the_topic_alone_does_not_show_that_a_coordinator_moved(tmp_path) -> None:
    assert {} == found(tmp_path, "lost_coordinator", "offsets")


def down(warehouse: Path, sources: str) -> dict[str, dict[str, Any]]:
    rows = found(warehouse, "offsets_topic", sources)
    assert {"offsets_partition_down"} >= {pattern for pattern, _ in rows}
    return {subject: row for (_, subject), row in rows.items()}


def test_each_sick_offsets_partition_is_one_incident_with_its_groups(tmp_path) -> None:
    """The third partition has lost its only replica, the others one of the three that `min.insync.replicas` asks for."""
    rows = down(tmp_path, "offsets,log,admin")
    assert {"__consumer_offsets-0", "__consumer_offsets-1", "__consumer_offsets-2"} == rows.keys()
    assert sorted(group for row in rows.values() for group in row["group_ids"]) == [
        "parcels-a", "parcels-b", "parcels-c",
    ]  # fmt: skip
    assert "Polls show no leader." in rows["__consumer_offsets-2"]["explanation"]
    assert (["poll"], "bounded") == (rows["__consumer_offsets-2"]["sources"], rows["__consumer_offsets-2"]["evidence"])
    for subject in ("__consumer_offsets-0", "__consumer_offsets-1"):
        assert "Polls show 2 replicas in sync, but min.insync.replicas is 3." in rows[subject]["explanation"]
        assert (["log", "poll"], "observed") == (rows[subject]["sources"], rows[subject]["evidence"])


def test_the_log_alone_shows_the_partitions_whose_assignments_could_not_be_stored(tmp_path) -> None:
    rows = down(tmp_path, "offsets,log")
    assert {"__consumer_offsets-0", "__consumer_offsets-1"} == rows.keys(), "a broker that is dead logs nothing"
    assert all("writes failed" in row["explanation"] for row in rows.values())


def test_the_topic_alone_does_not_show_a_sick_partition(tmp_path) -> None:
    assert {} == down(tmp_path, "offsets")
