"""Removal of partitions that a group's leader assigned but that do not exist according to polls.

The coordinator stores any assignment that the leader of a classic group sends (`GroupCoordinator.doSyncGroup`). Such
partitions contain no records, so nothing is lost while they have no owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pipelines.silver.history import History, Record

LISTS = (("assignment", "partitions"), ("subscription", "ownedPartitions"))
"""The lists of partitions in a consumer's blobs, as {topic: [partition]}."""

MISSING = "missingPartitions"
"""The field that `without_missing` adds to a record's value: {topic: [partition]} that it removed from assignments."""


def without_missing(history: History) -> History:
    """Return the history without partitions that do not exist, in the records of classic consumer groups.

    A topic without a poll stays unchanged, because polls see only topics for which Regroup has the permission DESCRIBE.
    """
    if not history.partition_counts:
        return history
    return replace(history, records=[_checked(record, history.partition_counts) for record in history.records])


def _checked(record: Record, counts: Mapping[str, int]) -> Record:
    value = record.value
    if record.kind != "GroupMetadata" or value is None or value["protocolType"] != "consumer":
        return record
    if not any(_missing(listed, counts) for member in value["members"] for listed in _lists(member)):
        return record
    missing: dict[str, set[int]] = {}
    members = []
    for member in value["members"]:
        for topic, partitions in _missing(_listed(member, *LISTS[0]), counts).items():
            missing.setdefault(topic, set()).update(partitions)
        members.append(member | {blob: _without(member[blob], field, counts) for blob, field in LISTS})
    return replace(record, value=value | {"members": members, MISSING: {t: sorted(p) for t, p in missing.items()}})


def _lists(member: Mapping[str, Any]) -> Iterable[Mapping[str, list[int]]]:
    return (_listed(member, blob, field) for blob, field in LISTS)


def _listed(member: Mapping[str, Any], blob: str, field: str) -> Mapping[str, list[int]]:
    part = member.get(blob)
    return (part.get(field) if isinstance(part, dict) else None) or {}


def _missing(listed: Mapping[str, list[int]], counts: Mapping[str, int]) -> dict[str, list[int]]:
    """Return the listed partitions that do not exist."""
    found = {}
    for topic, partitions in listed.items():
        count = counts.get(topic)
        if count is not None and partitions and max(partitions) >= count:
            found[topic] = [partition for partition in partitions if partition >= count]
    return found


def _without(blob: Any, field: str, counts: Mapping[str, int]) -> Any:
    if not isinstance(blob, dict) or not blob.get(field):
        return blob
    missing = _missing(blob[field], counts)
    kept = {
        topic: [p for p in partitions if p < counts[topic]] if topic in missing else partitions
        for topic, partitions in blob[field].items()
    }
    return blob | {field: kept}
