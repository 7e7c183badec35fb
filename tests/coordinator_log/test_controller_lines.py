"""Lines of controllers and state-change logs: every wording, and nothing that merely looks like one."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from pipelines.coordinator_events import ParsedEvent
from schemas.controller_log import CONTROLLER_LOGGERS, CONTROLLER_WORDINGS, ControllerEventKind
from testing.processor_time import within
from tests.coordinator_log.lines import line, parse, says

CAPTURE = Path(__file__).parents[1] / "captures" / "reassignment"
KRAFT, ZOOKEEPER, BROKER = CONTROLLER_LOGGERS
RECORD = (
    "Replayed partition assignment change PartitionChangeRecord(partitionId=4, topicId=l9tIqX8vRkCFr7knMuynlA, "
    "isr={isr}, leader=-2, replicas={replicas}, removingReplicas=null, addingReplicas=[1], leaderRecoveryState=-1{more}) "
    "for topic a.b_c-d"
)
REGISTRATION = (
    "PartitionRegistration(replicas=[4, 3, 2], directories=[Z71Oc9hIiLhjoXgVH6yRHQ, fvsqGhJlOtIyu1Z4oNzy9Q], "
    "isr=[2, 3, 4], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader=2, "
    "leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=1)"
)
REORDERED = {
    "event_kind": "replica_state", "broker_id": 2, "topic": "a-1", "partition": 5, "partition_epoch": 1,
    "topic_id": "l9tIqX8vRkCFr7knMuynlA", "replicas": [4, 3, 2], "adding": [], "removing": [], "isr": [2, 3, 4], "leader": 2,
}  # fmt: skip
GOLDEN = [
    (
        KRAFT,
        "[Controller 7] " + RECORD.format(isr="null", replicas="[5, 0, 3, 1]", more=""),
        {
            "event_kind": "assignment_changed", "broker_id": 7, "topic": "a.b_c-d", "partition": 4,
            "topic_id": "l9tIqX8vRkCFr7knMuynlA", "replicas": [5, 0, 3, 1], "adding": [1],
        },
    ),
    (
        KRAFT,
        "[QuorumController id=100] " + RECORD.format(isr="[0, 5]", replicas="null", more=", directories=null")
        + ". (isr: [5, 0] -> [0, 5], replicaSet: [5, 0] -> [5, 0, 1], partitionEpoch: 9, leaderEpoch: 3)",
        {
            "event_kind": "assignment_changed", "broker_id": 100, "topic": "a.b_c-d", "partition": 4,
            "topic_id": "l9tIqX8vRkCFr7knMuynlA", "replicas": [5, 0, 1], "replicas_before": [5, 0], "adding": [1],
            "isr": [0, 5], "partition_epoch": 9,
        },
    ),
    (
        KRAFT,
        "[QuorumController id=1] Successfully altered 2 out of 3 partition reassignment(s).",
        {"event_kind": "reassignments_altered", "broker_id": 1},
    ),
    (
        KRAFT,
        ("[QuorumController id=1] Unable to alter partition reassignment for a-1:5 because of an "
        "INVALID_REPLICA_ASSIGNMENT error: no broker 9"),
        {
            "event_kind": "reassignment_refused", "broker_id": 1, "topic": "a-1", "partition": 5,
            "reason": "INVALID_REPLICA_ASSIGNMENT error: no broker 9",
        },
    ),
    (
        ZOOKEEPER,
        ("[Controller id=3] Successfully updated assignment of partition a-1-5 to ReplicaAssignment("
        "replicas=2,3,5,1,0, addingReplicas=3,5, removingReplicas=1,0)"),
        {
            "event_kind": "assignment_changed", "broker_id": 3, "topic": "a-1", "partition": 5,
            "replicas": [2, 3, 5, 1, 0], "adding": [3, 5], "removing": [1, 0],
        },
    ),
    (
        ZOOKEEPER,
        ("[Controller id=3] Successfully updated assignment of partition a-1-5 to ReplicaAssignment("
        "replicas=2,3,5, addingReplicas=, removingReplicas=)"),
        {
            "event_kind": "assignment_changed", "broker_id": 3, "topic": "a-1", "partition": 5,
            "replicas": [2, 3, 5], "adding": [], "removing": [],
        },
    ),
    (
        ZOOKEEPER,
        "[Controller id=3] Target replicas Vector(2, 3) have all caught up with the leader for reassigning partition a-1-5",
        {"event_kind": "reassignment_caught_up", "broker_id": 3, "topic": "a-1", "partition": 5},
    ),
    (
        BROKER,
        ("[Broker id=2] Skipped the become-leader state change for a-1-5 with topic id Some(l9tIqX8vRkCFr7knMuynlA), "
        f"partition registration {REGISTRATION} and isNew=false since it is already the leader with leader epoch 0. "
        "Current high watermark 3602, ISR [2,3,4], adding replicas [] and removing replicas []."),
        REORDERED,
    ),
    (
        BROKER,
        ("[Broker id=2] Skipped the become-follower state change for a-1-5 with topic id Some(l9tIqX8vRkCFr7knMuynlA) and "
        "partition state LeaderAndIsrPartitionState(topicName='', partitionIndex=5, controllerEpoch=-1, leader=2, "
        "leaderEpoch=0, isr=[2, 3, 4], partitionEpoch=1, replicas=[4, 3, 2], addingReplicas=[], removingReplicas=[], "
        "isNew=false, leaderRecoveryState=0) since it is already a follower with leader epoch 0."),
        REORDERED,
    ),
    (
        BROKER,
        ("[Broker id=1] Leader a-1-5 with topic id None starts at leader epoch 1 from offset 0 with partition epoch 3, "
        "high watermark 0, ISR [1,2], adding replicas [3] and removing replicas [] (under-min-isr). "
        "Previous leader None and previous leader epoch was -1."),
        {
            "event_kind": "replica_state", "broker_id": 1, "topic": "a-1", "partition": 5, "partition_epoch": 3,
            "adding": [3], "removing": [], "isr": [1, 2],
        },
    ),
    (
        BROKER,
        ("[Broker id=1] Leader a-1-5 starts at leader epoch 1 from offset 0 with high watermark 0 ISR [1,2] "
        "addingReplicas [3] removingReplicas []. Previous leader epoch was -1."),
        {
            "event_kind": "replica_state", "broker_id": 1, "topic": "a-1", "partition": 5,
            "adding": [3], "removing": [], "isr": [1, 2],
        },
    ),
    (
        KRAFT,
        ("[QuorumController id=100] Replayed PartitionRecord for new partition a-1-5 with topic ID "
        f"l9tIqX8vRkCFr7knMuynlA and {REGISTRATION}."),
        REORDERED | {"event_kind": "partition_created", "broker_id": 100},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("logger", "message", "expected"), GOLDEN)
def test_a_wording_gives_its_columns(logger, message, expected) -> None:
    assert expected == says(parse(line(message, logger)))


def test_every_wording_and_kind_has_a_golden_line() -> None:
    assert len(CONTROLLER_WORDINGS) <= len(GOLDEN)
    assert {str(kind) for kind in ControllerEventKind} == {expected["event_kind"] for _, _, expected in GOLDEN}


@pytest.mark.parametrize(
    "message",
    [
        "[QuorumController id=1] Replayed partition change PartitionChangeRecord(partitionId=1) for topic a",
        "Successfully altered 2 out of 3 partition reassignment(s).",
        (
            "[Broker id=2] Skipped the become-leader state change for a-1-5 with topic id None, partition registration "
            f"{REGISTRATION} and isNew=false since the leader is already at a newer partition epoch 9."
        ),
        (
            "[Controller id=3] Successfully updated assignment of partition a b-5 to ReplicaAssignment("
            "replicas=2, addingReplicas=, removingReplicas=)"
        ),
    ],
)
def test_another_message_is_none_of_ours(message) -> None:
    assert [None] * 3 == [parse(line(message, logger)) for logger in CONTROLLER_LOGGERS]


def test_another_logger_may_print_what_it_likes() -> None:
    assert None is parse(line(GOLDEN[0][1], "com.example.ReplicationControlManager"))
    short = "2026-11-21 06:41:02 INFO  [controller-1] {}:9 - " + GOLDEN[0][1]
    assert isinstance(parse(short.format("ReplicationControlManager"), like="strimzi"), ParsedEvent)


def test_a_recorded_controllers_log_gives_exactly_the_lines_on_replicas() -> None:
    with gzip.open(CAPTURE / "controller-100.log.gz", "rt") as file:
        lines = file.read().splitlines()
    ours = {e.raw for text in lines if isinstance(e := parse(text), ParsedEvent)}
    declared = re.compile(r"Replayed (PartitionRecord for new|partition assignment change)|partition reassignment\(s\)")
    assert {text for text in lines if declared.search(text)} == ours
    assert 37 == len(ours)


@pytest.mark.parametrize("topic_id", ["0eLeMlQkR-KqpXoQ9sld6Q", "nullMlQkR-KqpXoQ9sld6Q", "-12eMlQkR-KqpXoQ9sld6Q"])
def test_a_topic_id_that_begins_like_a_number_or_like_null_is_read_whole(topic_id):
    printed = RECORD.format(isr="null", replicas="[5, 0]", more="").replace("l9tIqX8vRkCFr7knMuynlA", topic_id)
    found = parse(line(f"[Controller 7] {printed}", KRAFT))
    assert isinstance(found, ParsedEvent)
    assert (topic_id, 4, [5, 0]) == (found.topic_id, found.partition, found.replicas)


@pytest.mark.parametrize("number", ["2147483648", "9" * 30])
def test_a_broker_id_that_no_broker_has_makes_a_line_none_of_ours(number):
    text = line(
        "[QuorumController id=100] Replayed partition assignment change PartitionChangeRecord("
        f"partitionId=1, topicId=l9tIqX8vRkCFr7knMuynlA, isr=[3, {number}], leader=3) for topic orders",
        "org.apache.kafka.controller.ReplicationControlManager",
    )
    assert None is parse(text)


def test_a_field_of_60_kb_is_read_at_once():
    text = line(
        "[QuorumController id=100] Replayed partition assignment change PartitionChangeRecord("
        f"partitionId=1, isr=[3], directories=[Z7{'9' * 60_000}], leader=3) for topic orders",
        "org.apache.kafka.controller.ReplicationControlManager",
    )
    assert 3 == within(1, lambda: parse(text)).leader
