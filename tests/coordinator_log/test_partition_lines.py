"""Lines of brokers about their partitions of `__consumer_offsets`: replicas that drop out, and appends that fail."""

from __future__ import annotations

import pytest

from pipelines.event_sources import Claim, claim_of_line
from schemas.controller_log import PARTITION_LOGGERS, PARTITION_WORDINGS, PartitionEventKind
from tests.coordinator_log.lines import line, parse, says

PARTITION, REPLICAS = PARTITION_LOGGERS
PREFIX = "[Partition __consumer_offsets-43 broker=3] "
GOLDEN = [
    (
        PARTITION,
        PREFIX + "Shrinking ISR from 3,1,4 to 3. Leader: (highWatermark: 115, endOffset: 120). "
        "Out of sync replicas: (brokerId: 1, endOffset: 115) (brokerId: 4, endOffset: 116).",
        {"event_kind": "isr_shrinking", "isr": [3]},
    ),
    (PARTITION, PREFIX + "Expanding ISR from 3 to 3,4", {"event_kind": "isr_expanding", "isr": [3, 4]}),
    (
        PARTITION,
        PREFIX + "ISR updated to 3 (under-min-isr) and version updated to 9",
        {"event_kind": "isr_under_min", "isr": [3]},
    ),
    (PARTITION, PREFIX + "ISR updated to 3,4  and version updated to 10", {"event_kind": "isr_updated", "isr": [3, 4]}),
    (PARTITION, PREFIX + "ISR updated to 3,4 and version updated to 10", {"event_kind": "isr_updated", "isr": [3, 4]}),
    (
        REPLICAS,
        "[ReplicaManager broker=3] Error processing append operation on partition __consumer_offsets-43",
        {"event_kind": "append_failed"},
    ),
]


@pytest.mark.parametrize(("logger", "message", "expected"), GOLDEN)
def test_a_wording_gives_its_columns(logger, message, expected) -> None:
    assert expected | {"broker_id": 3, "source_partition": 43} == says(parse(line(message, logger)))


def test_every_wording_has_a_golden_line_and_every_kind_is_a_coordinators() -> None:
    assert [str(w.kind) for w in PARTITION_WORDINGS] == [expected["event_kind"] for _, _, expected in GOLDEN]
    assert set(PartitionEventKind) == {w.kind for w in PARTITION_WORDINGS}
    assert {Claim.COORDINATOR} == {claim_of_line(kind) for kind in PartitionEventKind}, "server.log has both"


def test_the_lines_are_read_in_the_layout_of_strimzi() -> None:
    text = "2026-11-21 06:41:02 INFO  [executor-1] Partition:66 - " + GOLDEN[0][1]
    assert "isr_shrinking" == says(parse(text, like="strimzi"))["event_kind"]


@pytest.mark.parametrize(
    ("logger", "message"),
    [
        (PARTITION, "[Partition orders-43 broker=3] Expanding ISR from 3 to 3,4"),
        (PARTITION, PREFIX + "Log loaded for partition __consumer_offsets-43 with initial high watermark 0"),
        (REPLICAS, "[ReplicaManager broker=3] Error processing append operation on partition orders-43"),
        (REPLICAS, "[ReplicaManager broker=3] Stopping replica fetchers"),
        ("com.example.Partition", PREFIX + "Expanding ISR from 3 to 3,4"),
    ],
)
def test_lines_about_other_topics_and_other_lines_are_not_kept(logger, message) -> None:
    assert None is parse(line(message, logger))
