"""The members of a group as polls report them, for each protocol.

A body has `assignor` and `members`; each member has `member_id`, `instance_id`, `client_id` and `host`. If the
assignments exceed the limit, they are left out and `too_large` is their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.limits import Limits
from pipelines.long_names import shortened


def consumer_members(group: Any, limits: Limits) -> dict[str, Any]:
    """Return the body of a consumer group as confluent-kafka describes it, with `coordinator` and each `assignment`."""
    assignments = {each.member_id: each.assignment.topic_partitions for each in group.members}
    total = sum(map(len, assignments.values()))
    is_too_large = total > limits.resources
    members = [
        {
            "member_id": shortened(each.member_id, limits.name_bytes),
            "instance_id": each.group_instance_id and shortened(each.group_instance_id, limits.name_bytes),
            "client_id": shortened(each.client_id, limits.name_bytes),
            "host": each.host,
            "assignment": []
            if is_too_large
            else sorted([at.topic, at.partition] for at in assignments[each.member_id]),
        }
        for each in sorted(group.members, key=lambda each: each.member_id)
    ]
    coordinator = group.coordinator.id if group.coordinator else None
    body = {"assignor": group.partition_assignor, "coordinator": coordinator, "members": members}
    return body | {"too_large": total} if is_too_large else body


def classic_members(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a group that kafka-python describes, such as Connect workers, with `state`.

    The members have no `assignment`, because each protocol type encodes it in its own way.
    """
    members = [
        {
            "member_id": each["member_id"],
            "instance_id": each.get("group_instance_id"),
            "client_id": each["client_id"],
            "host": each["client_host"],
        }
        for each in sorted(described["members"], key=lambda each: each["member_id"])
    ]
    return {"state": described["group_state"], "assignor": described["protocol_data"], "members": members}


def streams_members(group: Any, limits: Limits) -> dict[str, Any]:
    """Return the body of a group in a StreamsGroupDescribe response, with the `epoch` of the group and of each member.

    The `assignment` of a member has the partitions that its active tasks read; `standby_tasks` and `warmup_tasks` are
    numbers.
    """
    subtopologies = group.topology.subtopologies if group.topology is not None else None
    read = {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies or ()
    }
    assigned = {
        each.member_id: sorted(
            [topic, partition]
            for task in each.assignment.active_tasks
            for topic in read.get(task.subtopology_id, ())
            for partition in task.partitions
        )
        for each in group.members
    }
    total = sum(map(len, assigned.values()))
    is_too_large = total > limits.resources
    rows = [
        {
            "member_id": shortened(each.member_id, limits.name_bytes),
            "instance_id": each.instance_id and shortened(each.instance_id, limits.name_bytes),
            "client_id": shortened(each.client_id, limits.name_bytes),
            "host": each.client_host,
            "epoch": each.member_epoch,
            "assignment": [] if is_too_large else assigned[each.member_id],
            "standby_tasks": _number(each.assignment.standby_tasks),
            "warmup_tasks": _number(each.assignment.warmup_tasks),
        }
        for each in sorted(group.members, key=lambda each: each.member_id)
    ]
    body = {"assignor": group.assignor_name, "epoch": group.group_epoch, "members": rows}
    return body | {"too_large": total} if is_too_large else body


def _number(tasks: Sequence[Any]) -> int:
    return sum(len(each.partitions) for each in tasks)
