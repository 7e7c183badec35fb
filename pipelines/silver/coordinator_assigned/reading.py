"""Record values of the three kinds of groups to the dataclasses of `epochs`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pipelines.silver.coordinator_assigned.epochs import NOTHING, CurrentAssignment, EpochMember, TargetAssignment
from pipelines.silver.history import Record, Resource

Named = Callable[[Iterable[Mapping[str, Any]]], frozenset[Resource]]
"""A function from topic partitions to resources (`TopicNames.resources`)."""

STABLE = {"ConsumerGroup": 0, "ShareGroup": 0, "StreamsGroup": 1}
"""The number of STABLE in `consumer.MemberState` and `streams.MemberState`.

A share group's members have no other state.
"""


def member(record: Record, value: Mapping[str, Any]) -> EpochMember:
    classic = value.get("classicMemberMetadata")
    blobs = [p["metadata"] for p in classic["supportedProtocols"]] if classic else []
    return EpochMember(
        member_id=record.member_id or "",
        group_instance_id=value.get("instanceId"),
        client_id=value["clientId"],
        client_host=value["clientHost"],
        rebalance_timeout_ms=value.get("rebalanceTimeoutMs"),
        session_timeout_ms=classic["sessionTimeoutMs"] if classic else None,
        topics=frozenset(value.get("subscribedTopicNames", ())),
        regex=value.get("subscribedTopicRegex") or None,
        assignor=value.get("serverAssignor"),
        is_classic=classic is not None,
        # A cooperative client lists the partitions it keeps whenever it rejoins (KIP-429), and the record has them.
        owns_on_rejoin=any(isinstance(blob, dict) and blob.get("ownedPartitions") for blob in blobs),
    )


def target(value: Mapping[str, Any], named: Named) -> TargetAssignment:
    if "topicPartitions" in value:
        return TargetAssignment(active=named(value["topicPartitions"]))
    return TargetAssignment(
        active=tasks(value["activeTasks"]), standby=tasks(value["standbyTasks"]), warmup=tasks(value["warmupTasks"])
    )


def current(prefix: str, value: Mapping[str, Any], named: Named) -> CurrentAssignment:
    if "activeTasks" in value:
        assigned, pending = tasks(value["activeTasks"]), tasks(value["activeTasksPendingRevocation"])
    else:
        assigned = named(value["assignedPartitions"])
        pending = named(value.get("partitionsPendingRevocation", ()))
    # The layout of 3.6 and 3.7 has no state, but the partitions that the member still waits for.
    is_stable = value["state"] == STABLE[prefix] if "state" in value else not value["partitionsPendingAssignment"]
    return CurrentAssignment(
        epoch=value["memberEpoch"],
        is_done=is_stable and not pending,
        assigned=assigned,
        pending=pending,
    )


def tasks(listed: Iterable[Mapping[str, Any]]) -> frozenset[Resource]:
    return frozenset((t["subtopologyId"], index) for t in listed for index in t["partitions"]) or NOTHING
