"""Partitions that a group's leader assigned although polls say that their topic has no such partition.

The coordinator stores whatever assignment the leader of a classic group sends (`GroupCoordinator.doSyncGroup`). Such
partitions hold no records, so nothing is lost while nobody has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pipelines.silver.history import History, Record

LISTS = (("assignment", "partitions"), ("subscription", "ownedPartitions"))
"""Where a consumer's blobs list partitions, as {topic: [partition]}."""

MISSING = "missingPartitions"
"""The field that `without_missing` adds to a record's value: {topic: [partition]} that it took out of assignments."""


def without_missing(history: History) -> History:
    """The history without partitions that polls say do not exist, in records of classic groups of consumers.

    A topic that no poll names is left alone: polls see only topics on which Regroup has DESCRIBE.
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
    """Those of the listed partitions that do not exist."""
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
