"""KIP-1071 groups from hand-made records: tasks are the resources, and only active ones stop."""

from __future__ import annotations

from typing import Any

from tests.silver.group_records import Body, Script, gone

STREAMS = "StreamsGroup"
Tasks = dict[str, list[int]]


def tasks(of: Tasks | None) -> list[dict[str, Any]]:
    return [{"subtopologyId": name, "partitions": partitions} for name, partitions in (of or {}).items()]


def member(member_id: str) -> Body:
    value = {
        "instanceId": None, "rackId": None, "clientId": "app", "clientHost": "/10.0.0.1", "rebalanceTimeoutMs": 300_000,
        "topologyEpoch": 0, "processId": "p", "userEndpoint": None, "clientTags": [],
    }  # fmt: skip
    return f"{STREAMS}MemberMetadata", member_id, value, {}


def epoch(number: int, **more: int) -> Body:
    return f"{STREAMS}Metadata", None, {"epoch": number, "metadataHash": 0} | more, {}


def topology(number: int = 0) -> Body:
    part = {
        "subtopologyId": "0", "sourceTopics": ["orders"], "sourceTopicRegex": [], "stateChangelogTopics": [],
        "repartitionSinkTopics": [], "repartitionSourceTopics": [], "copartitionGroups": [],
    }  # fmt: skip
    return f"{STREAMS}Topology", None, {"epoch": number, "subtopologies": [part]}, {}


def target(member_id: str, active: Tasks, standby: Tasks | None = None, warmup: Tasks | None = None) -> Body:
    value = {"activeTasks": tasks(active), "standbyTasks": tasks(standby), "warmupTasks": tasks(warmup)}
    return f"{STREAMS}TargetAssignmentMember", member_id, value, {}


def target_epoch(number: int) -> Body:
    return f"{STREAMS}TargetAssignmentMetadata", None, {"assignmentEpoch": number}, {}


def current(member_id: str, number: int, active: Tasks, *, state: int = 1, pending: Tasks | None = None) -> Body:
    value = {
        "memberEpoch": number, "previousMemberEpoch": 0, "state": state, "activeTasks": tasks(active),
        "standbyTasks": [], "warmupTasks": [], "activeTasksPendingRevocation": tasks(pending),
        "standbyTasksPendingRevocation": [], "warmupTasksPendingRevocation": [],
    }  # fmt: skip
    return f"{STREAMS}CurrentMemberAssignment", member_id, value, {}


def moving() -> Script:
    """A runs tasks 0_0 and 0_1; B joins with a standby for 0_1 and then gets the task."""
    return (
        Script()
        .at(0, member("A"), topology(), epoch(2, validatedTopologyEpoch=0), target("A", {"0": [0, 1]}),
            target_epoch(2), current("A", 2, {"0": [0, 1]}))
        .commit(8_000, 0, 1)
        .commit(9_000, 0, 1)
        .at(10_000, member("B"), epoch(3, validatedTopologyEpoch=0), target("A", {"0": [0]}),
            target("B", {"0": [1]}, standby={"0": [0]}), target_epoch(3), current("B", 3, {}, state=3))
        .at(11_000, current("A", 2, {"0": [0]}, state=2, pending={"0": [1]}))
        .at(11_200, current("A", 3, {"0": [0]}))
        .at(14_000, current("B", 3, {"0": [1]}))
        .commit(14_300, 1)
    )  # fmt: skip


def test_a_task_that_moves_is_away_from_its_revocation_to_its_new_owner() -> None:
    (s,) = moving().rows()["stalls"]
    assert ("0", 1, "A", "B", "moved") == (s["name"], s["index"], s["from_member_id"], s["to_member_id"], s["cause"])
    assert (11_000, 11_200, 14_000) == (s["stopped_at_earliest"], s["stopped_at_latest"], s["resumed_at_earliest"])


def test_a_tasks_commits_are_those_of_its_source_topic() -> None:
    (s,) = moving().rows()["stalls"]
    assert (14_300, 9_000, 14_300) == (s["resumed_at_latest"], s["last_commit_at"], s["first_commit_at"])


def test_roles_are_apart_and_state_numbers_are_the_streams_ones() -> None:
    rows = moving().rows()
    b = next(m for m in rows["generation_members"] if m["member_id"] == "B")
    assert ([("0", 1)], [("0", 0)], []) == tuple(
        [(r["name"], r["index"]) for r in b[role]] for role in ("assigned", "standby", "warmup")
    )
    assert [(2, "completed", 0), (3, "completed", 14_000)] == [
        (g["generation_id"], g["outcome"], g["completed_at"]) for g in rows["generations"]
    ]
    assert [("streams", "streams", "Stable")] == [
        (g["group_type"], g["group_protocol"], g["state"]) for g in rows["groups"]
    ]


def test_a_topology_that_is_not_validated_leaves_the_group_not_ready() -> None:
    rows = Script().at(0, member("A"), topology(), epoch(1)).rows()
    assert ["NotReady"] == [g["state"] for g in rows["groups"]]
    later = moving().at(20_000, topology(1), epoch(4, validatedTopologyEpoch=0)).rows()
    assert ["NotReady"] == [g["state"] for g in later["groups"]]


def test_a_release_that_never_writes_the_validated_epoch_is_ready_once_tasks_are_handed_out() -> None:
    rows = (
        Script()
        .at(0, member("A"), topology(), epoch(1), target("A", {"0": [0]}), target_epoch(1), current("A", 1, {"0": [0]}))
        .rows()
    )
    assert ["Stable"] == [g["state"] for g in rows["groups"]]


def test_the_same_epoch_written_again_is_no_rebalance() -> None:
    rows = moving().at(20_000, epoch(3, validatedTopologyEpoch=0, storedDescriptionTopologyEpoch=0)).rows()
    assert [2, 3] == [g["generation_id"] for g in rows["generations"]]
    assert {0} == {g["incarnation"] for g in rows["generations"]}


def test_a_members_tasks_stop_when_it_goes() -> None:
    rows = moving().at(20_000, *gone("B", STREAMS), epoch(4, validatedTopologyEpoch=0)).rows()
    assert [("0", 1, 4)] == [
        (s["name"], s["index"], s["generation_id"]) for s in rows["stalls"] if s["from_member_id"] == "B"
    ]


def test_a_member_that_rests_on_another_assignment_than_its_target_has_reached_the_epoch() -> None:
    """As Kafka 4.4 may do while a warm-up task restores its state: A keeps the task that the target gives to B."""
    rows = (
        Script()
        .at(0, member("A"), topology(), epoch(2, validatedTopologyEpoch=0), target("A", {"0": [0, 1]}),
            target_epoch(2), current("A", 2, {"0": [0, 1]}))
        .commit(9_000, 0, 1)
        .at(10_000, member("B"), epoch(3, validatedTopologyEpoch=0), target("A", {"0": [0]}),
            target("B", {"0": [1]}), target_epoch(3), current("A", 3, {"0": [0, 1]}), current("B", 3, {}))
        .commit(11_000, 0, 1)
        .rows()
    )  # fmt: skip
    assert [] == rows["stalls"]
    assert [(2, "completed", 0), (3, "completed", 10_000)] == [
        (g["generation_id"], g["outcome"], g["completed_at"]) for g in rows["generations"]
    ]
    assert ["Stable"] == [g["state"] for g in rows["groups"]]
