"""Messages of controllers, and of brokers about replicas, to columns that describe a partition's replicas."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from schemas.controller_log import CONTROLLER_WORDINGS, PARTITION_WORDINGS, PREFIXES, ControllerWording

_LIST = r"\[[\d, ]{0,4000}\]"
_ARGUMENTS = {
    "topic": r"(?P<topic>[A-Za-z0-9._-]{1,249}?)",
    "topic_id": r"(?:Some\()?(?P<topic_id>[A-Za-z0-9_-]{1,32}|None)\)?",
    "partition": r"(?P<partition>\d{1,9})",
    "source_partition": r"(?P<source_partition>\d{1,9})",
    "partition_epoch": r"(?P<partition_epoch>\d{1,9})",
    "fields": r"(?P<fields>[^()]*)",
    "list": _LIST,
    "bare_list": r"[\d,]{0,4000}",
    "reason": r"(?P<reason>.*)",
    "_": r".*",
    "_n": r"-?\d{1,19}",
    "_w": r"\w{1,32}",
}
_ARGUMENTS |= {name: rf"(?P<{name}>{_LIST})" for name in ("isr", "replicas", "replicas_before", "adding", "removing")}
_ARGUMENTS |= {f"bare_{name}": rf"(?P<{name}>[\d,]{{0,4000}})" for name in ("replicas", "adding", "removing", "isr")}
# A topic id may begin with digits or with "null", so the pattern matches the whole word.
# The lookbehind and the length limit on names keep the matching time proportional to the text.
_FIELD = re.compile(rf"(?<!\w)(\w{{1,40}})=({_LIST}|[A-Za-z0-9_-]+)")
_FIELDS = {
    "partitionId": "partition",
    "topicId": "topic_id",
    "partitionEpoch": "partition_epoch",
    "replicas": "replicas",
    "addingReplicas": "adding",
    "removingReplicas": "removing",
    "isr": "isr",
    "leader": "leader",
}
_LISTS = {"replicas", "replicas_before", "adding", "removing", "isr"}
_NUMBERS = {"broker_id", "partition", "source_partition", "partition_epoch", "leader"}
_UNKNOWN_TOPIC_ID = ("None", "AAAAAAAAAAAAAAAAAAAAAA")


def _reader(wording: ControllerWording) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", wording.text)
    pattern = "".join(_ARGUMENTS[part] if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return re.compile(rf"(?s){PREFIXES[wording.logger]}{pattern}\Z")


_READERS: dict[str, list[tuple[ControllerWording, re.Pattern[str]]]] = defaultdict(list)
for _wording in (*CONTROLLER_WORDINGS, *PARTITION_WORDINGS):
    _READERS[_wording.logger].append((_wording, _reader(_wording)))


def read_controller(logger: str, message: str) -> dict[str, Any] | None:
    """Return the columns of `coordinator_events` that a message contains.

    Return None unless the whole message matches one of Kafka's wordings. A list is None if the message does not contain
    it; in a change record, `null` means that the list did not change. A value next to the record (`replicaSet: … -> …`)
    is the state after the change and takes precedence over the value in the record.
    """
    for wording, reader in _READERS.get(logger, ()):
        found = reader.match(message)
        if found is not None:
            parsed = {name: value for name, value in found.groupdict().items() if value is not None}
            columns = _columns(_of_record(parsed.pop("fields", "")) | parsed)
            return columns | {"event_kind": wording.kind.value} if columns is not None else None
    return None


def _of_record(printed: str) -> dict[str, str]:
    return {_FIELDS[name]: value for name, value in _FIELD.findall(printed) if name in _FIELDS and value != "null"}


def _columns(values: dict[str, str]) -> dict[str, Any] | None:
    """Return the values as columns.

    Return None for a number that Kafka cannot have printed, such as one above 32 bits.
    """
    columns: dict[str, Any] = dict(values)
    try:
        for name in _LISTS & values.keys():
            columns[name] = [_int32(each) for each in re.findall(r"\d+", values[name])]
        for name in _NUMBERS & values.keys():
            columns[name] = _int32(values[name])
    except ValueError:
        return None
    if columns.get("leader", 0) < 0:  # -1: no leader, -2: unchanged
        del columns["leader"]
    if columns.get("topic_id") in _UNKNOWN_TOPIC_ID:
        del columns["topic_id"]
    return columns


def _int32(text: str) -> int:
    number = int(text)
    if not -(2**31) <= number < 2**31:
        raise ValueError(text)
    return number
