"""From lines as brokers print them to an incident: the old and the new coordinator, each in its own words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipelines.log_layouts import layout, zone
from pipelines.log_lines import PlacedLine, line_rows
from schemas.bronze import COORDINATOR_EVENTS
from testing.alerts.rows import MINUTE, NOW
from tests.gold.patterns.clusters import DOWN, SECOND, ClusterRows

BEGAN = NOW - 30 * MINUTE
SCALA = (
    (
        "ERROR [ReplicaManager broker=2] Error processing append operation on partition __consumer_offsets-7 "
        "(kafka.server.ReplicaManager)"
    ),
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(2) is insufficient",
    (
        "INFO [GroupCoordinator 2]: Preparing to rebalance group orders in state PreparingRebalance with old generation 9 "
        "(__consumer_offsets-7) (reason: error when storing group assignment during SyncGroup (member: "
        "a-685ff611-281a-40d1-84e0-7c00ba4a818a)) (kafka.coordinator.group.GroupCoordinator)"
    ),
)
JAVA = (
    (
        "ERROR [GroupCoordinator id=2 topic=__consumer_offsets partition=7] Writing records to __consumer_offsets-7 failed "
        "due to: The size of the current ISR : 1 is insufficient to satisfy the min.isr requirement of 2 for partition "
        "__consumer_offsets-7. (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"
    ),
)
UNDER_MIN = (
    (
        "INFO [Partition __consumer_offsets-7 broker=2] Shrinking ISR from 1,2 to 2. Leader: (highWatermark: 1, "
        "endOffset: 2). Out of sync replicas: (brokerId: 1, endOffset: 1, lastCaughtUpTimeMs: 1). (kafka.cluster.Partition)"
    ),
    (
        "INFO [Partition __consumer_offsets-7 broker=2] ISR updated to 2 (under-min-isr) and version updated to 8 "
        "(kafka.cluster.Partition)"
    ),
)
LOAD = (
    (
        "ERROR [GroupCoordinator id=2 topic=__consumer_offsets partition=7] Failed to load metadata from "
        "__consumer_offsets-7 with epoch 12 due to Unknown version 9. "
        "(org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"
    ),
)
OLD_LOAD = (
    (
        "ERROR [GroupMetadataManager brokerId=2] Error loading offsets from __consumer_offsets-7 "
        "(kafka.coordinator.group.GroupMetadataManager)"
    ),
)


def printed(at: int, text: str) -> str:
    stamp = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    return f"[{stamp}] {text}" if text.startswith(("INFO", "ERROR")) else text


@pytest.mark.parametrize(
    ("texts", "times"), [(SCALA, 20), (JAVA, 20), (UNDER_MIN, 1), (LOAD, 1), (OLD_LOAD, 1)], ids=str
)
def test_the_lines_of_every_source_show_the_incident(tmp_path, texts, times) -> None:
    described = ClusterRows(tmp_path)
    described.group("orders", DOWN)
    lines = [printed(BEGAN + number * 10 * SECOND, text) for number in range(times) for text in texts]
    placed = [PlacedLine("server.log", number, text) for number, text in enumerate(lines, 1)]
    events, refused = line_rows(placed, cluster="kafka", layout=layout("default"), zone=zone("UTC"))
    assert [] == refused
    for event in events:
        described.add(COORDINATOR_EVENTS, **event | {"event_at": round(event["event_at"].timestamp() * 1000)})
    (row,) = described.found("offsets_partition_down")
    assert (BEGAN, ["orders"], ["broker 2"], times) == (
        row["started_at"], row["group_ids"], row["instances"], row["times"],
    )  # fmt: skip
