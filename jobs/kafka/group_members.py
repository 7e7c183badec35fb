"""The members of a group as polls report them, for each protocol.

A body has `assignor` and `members`; each member has `member_id`, `instance_id`, `client_id` and `host`. If the
assignments exceed the limit, they are left out and `too_large` is their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.decoding.blob_fields import Blob
from pipelines.decoding.member_blobs import decode_assignment
from pipelines.limits import Limits
from pipelines.long_names import shortened


def classic_members(group: Any, limits: Limits) -> dict[str, Any]:
    """Return the body of a group in a DescribeGroups response.

    The members of a group of another protocol type, such as Connect workers, have no `assignment`, because each type
    encodes it in its own way.
    """
    members = sorted(group.members, key=lambda each: each.member_id)
    rows = [_named(each, each.group_instance_id, each.client_host, limits) for each in members]
    body = {"assignor": group.protocol_data}
    if group.protocol_type not in ("consumer", ""):
        return body | {"members": rows}
    assigned = [
        _assigned(decode_assignment(each.member_assignment, "consumer", group.protocol_data)) for each in members
    ]
    return body | _with_assignments(rows, assigned, limits)


def consumer_members(group: Any, limits: Limits) -> dict[str, Any]:
    """Return the body of a group in a ConsumerGroupDescribe response. The `assignment` is what a member reads now."""
    members = sorted(group.members, key=lambda each: each.member_id)
    rows = [_named(each, each.instance_id, each.client_host, limits) for each in members]
    assigned = [
        sorted([at.topic_name, partition] for at in each.assignment.topic_partitions for partition in at.partitions)
        for each in members
    ]
    return {"assignor": group.assignor_name} | _with_assignments(rows, assigned, limits)


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
    members = sorted(group.members, key=lambda each: each.member_id)
    rows = [
        _named(each, each.instance_id, each.client_host, limits)
        | {
            "epoch": each.member_epoch,
            "standby_tasks": _number(each.assignment.standby_tasks),
            "warmup_tasks": _number(each.assignment.warmup_tasks),
        }
        for each in members
    ]
    assigned = [
        sorted(
            [topic, partition]
            for task in each.assignment.active_tasks
            for topic in read.get(task.subtopology_id, ())
            for partition in task.partitions
        )
        for each in members
    ]
    body = {"assignor": group.assignor_name, "epoch": group.group_epoch}
    return body | _with_assignments(rows, assigned, limits)


def _assigned(assignment: Blob) -> list[list[Any]]:
    """Return the partitions of a decoded assignment; none if the member has none or its bytes cannot be decoded."""
    topics = assignment.get("partitions", {}).items()
    return sorted([topic, partition] for topic, partitions in topics for partition in partitions)


def _named(member: Any, instance_id: str | None, host: str, limits: Limits) -> dict[str, Any]:
    return {
        "member_id": shortened(member.member_id, limits.name_bytes),
        "instance_id": instance_id and shortened(instance_id, limits.name_bytes),
        "client_id": shortened(member.client_id, limits.name_bytes),
        "host": host,
    }


def _with_assignments(rows: Sequence[dict[str, Any]], assigned: Sequence[list[Any]], limits: Limits) -> dict[str, Any]:
    """Return `members` with their assignments, in the order of the rows."""
    total = sum(map(len, assigned))
    is_too_large = total > limits.resources
    members = [row | {"assignment": [] if is_too_large else each} for row, each in zip(rows, assigned, strict=True)]
    return {"members": members} | ({"too_large": total} if is_too_large else {})


def _number(tasks: Sequence[Any]) -> int:
    return sum(len(each.partitions) for each in tasks)
