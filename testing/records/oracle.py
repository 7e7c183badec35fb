"""Kafka's own reading of records, and where ours differs from it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jobs.setup.jars import jars
from jobs.setup.java import java
from pipelines.decoding.member_blobs import decode_assignment, decode_subscription
from pipelines.decoding.record_decoding import Decoded, decode_record
from schemas.records import KINDS, Struct, Type
from schemas.states import QuarantineReason

SOURCE = Path(__file__).with_name("Oracle.java")
STRICTER = {
    # Kafka puts a replacement character in place of bytes that are not UTF-8.
    QuarantineReason.INVALID_UTF8,
    # Kafka takes any negative length for null, and a varint that overflows for a negative one.
    QuarantineReason.INVALID_LENGTH,
    # Kafka takes every marker of a nullable struct but a negative one for a struct.
    QuarantineReason.INVALID_VALUE,
}
"""Reasons for which we may refuse a record that Kafka reads completely."""
DEFAULTS: tuple[Any, ...] = (0, -1, None, [], "A" * 22)
AFTER_4_3 = {"storedDescriptionTopologyEpoch", "failedDescriptionTopologyEpoch"}

Record = tuple[bytes, bytes | None]


def kafka_reads(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return one response per record, see `Oracle.java`."""
    asked = "".join(f"{key.hex()} {'-' if value is None else value.hex()}\n" for key, value in records)
    path = os.pathsep.join(map(str, jars("kafka")))
    command = [str(java()), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", path, str(SOURCE)]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def differences(records: Iterable[Record], *, all_are_kafkas: bool) -> Iterator[str]:
    """A sentence for each record that one side reads otherwise than the other.

    Unless all are records that Kafka writes, those that it refuses or leaves bytes of are not compared.
    """
    records = list(records)
    for (key, value), kafka in zip(records, kafka_reads(records), strict=True):
        ours = decode_record(key, value)
        where = f"{key.hex()} {value.hex() if value is not None else None}"
        if kafka.get("unread") != 0:
            if all_are_kafkas:
                yield f"Kafka: {kafka} in {where}"
        elif isinstance(ours, Decoded):
            yield from (f"{difference} in {where}" for difference in compared(ours, kafka))
        elif all_are_kafkas or ours.reason not in STRICTER:
            yield f"{ours} in {where}"


def compared(ours: Decoded, kafka: dict[str, Any]) -> Iterator[str]:
    """Return the differences between two readings of the same bytes."""
    if (kafka["key"], kafka.get("version")) != (ours.body["key"], ours.value_version):
        yield f"key or version: Kafka {kafka['key']} {kafka.get('version')}, we {ours.body['key']} {ours.value_version}"
    if ours.value_version is None:
        return
    expected, actual = kafka["value"], ours.body["value"]
    if ours.record_kind == "GroupMetadata":
        _open_members(expected)
    elif ours.record_kind == "ConsumerGroupMemberMetadata":
        for protocol in (expected.get("classicMemberMetadata") or {}).get("supportedProtocols", ()):
            protocol["metadata"] = decode_subscription(_raw(protocol["metadata"]), "consumer", protocol["name"])
    layout = KINDS[ours.key_version].versions[ours.value_version].layouts[0]
    expected, found = _without_defaults(expected, layout), _without_defaults(actual, layout)
    if expected != found:
        yield f"value: Kafka {expected}, we {found}"
    for number, (member, opened) in enumerate(zip(actual.get("members", ()), kafka.get("members", ()), strict=False)):
        for name, blob in opened.items():
            if "error" not in blob and "opaque" not in member[name] and member[name]:
                yield from _blob(f"{name} of member {number}", member[name], blob)


def _blob(where: str, ours: dict[str, Any], kafka: dict[str, Any]) -> Iterator[str]:
    """A consumer's blob beside what `ConsumerProtocolSubscription` or `…Assignment` read from the same bytes."""
    partitions = kafka.pop("assignedPartitions", None)
    if partitions is not None:
        kafka["partitions"] = partitions
    for name in {"ownedPartitions", "partitions"} & kafka.keys():
        folded: dict[str, list[int]] = {}
        for entry in kafka[name]:
            folded.setdefault(entry["topic"], []).extend(entry["partitions"])
        kafka[name] = folded
    user_data = _raw(kafka.pop("userData") or "")
    if bool(user_data) != (ours["userData"] is not None) or len(user_data) != (ours["userDataSize"] or 0):
        yield f"user data of {where}"
    # These classes do not decode the user data.
    apart = {"userData", "userDataLayout", "userDataSize"}
    found = {name: value for name, value in ours.items() if name not in apart and value is not None}
    if {name: value for name, value in kafka.items() if value is not None} != found:
        yield f"{where}: Kafka {kafka}, we {found}"


def _open_members(group: dict[str, Any]) -> None:
    """Shows that both cut the same bytes out of the record; their content is compared separately."""
    for member in group["members"]:
        protocol = group["protocolType"], group["protocol"]
        member["subscription"] = decode_subscription(_raw(member["subscription"]), *protocol)
        member["assignment"] = decode_assignment(_raw(member["assignment"]), *protocol)


def _without_defaults(value: Any, layout: Type) -> Any:
    """Kafka's printer leaves out a tagged field that has its default or no elements, be it written or not."""
    layout = getattr(layout, "type", layout)
    if isinstance(layout, list) and isinstance(value, list):
        return [_without_defaults(each, layout[0]) for each in value]
    if not (isinstance(layout, Struct) and isinstance(value, dict)):
        return value
    tagged = {name for name, _ in layout.tags.values()}
    kinds = dict((*layout.fields, *layout.tags.values()))
    return {
        name: _without_defaults(actual, kinds[name])
        for name, actual in value.items()
        if not (name in AFTER_4_3 or (name in tagged and actual in DEFAULTS))
    }


def _raw(text: str) -> bytes:
    return base64.b64decode(text)
