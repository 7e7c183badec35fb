"""Every layout of every record type reads back what was written by it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.decoding.member_blobs import decode_assignment, decode_subscription, opaque
from pipelines.decoding.record_decoding import Decoded, decode_record
from schemas.records import KINDS
from testing.records.writing import NAME_LENGTHS, UNKNOWN_TAGS, filled, record, values, versions, written

LAYOUTS = versions()
IDS = [f"{KINDS[number].name}-v{version}-{at}" for at, (number, version, _) in enumerate(LAYOUTS)]


def opened(number: int, value: dict[str, Any]) -> dict[str, Any]:
    """`value` with its blobs read."""
    if number == 2:
        printed = value["protocolType"], value["protocol"]
        members = [
            member
            | {
                "subscription": decode_subscription(member["subscription"], *printed),
                "assignment": decode_assignment(member["assignment"], *printed),
            }
            for member in value["members"]
        ]
        return value | {"members": members}
    if value.get("classicMemberMetadata"):
        protocols = [
            {"name": p["name"], "metadata": decode_subscription(p["metadata"], "consumer", p["name"])}
            for p in value["classicMemberMetadata"]["supportedProtocols"]
        ]
        return value | {"classicMemberMetadata": value["classicMemberMetadata"] | {"supportedProtocols": protocols}}
    if "assignors" in value:
        return value | {"assignors": [a | {"metadata": opaque(a["metadata"])} for a in value["assignors"]]}
    if "metadataBytes" in value:
        return value | {"metadataBytes": opaque(value["metadataBytes"])}
    return value


def is_flexible(number: int, version: int) -> bool:
    return KINDS[number].versions[version].flexible


def check(layout, key, value, unknown=None) -> None:
    number, version, struct = layout
    decoded = decode_record(*record(number, version, struct, key, value, unknown))
    assert isinstance(decoded, Decoded), decoded
    is_early = struct in KINDS[number].versions[version].early_access
    expected = {"key": key, "value": opened(number, value)} | ({"earlyAccess": True} if is_early else {})
    assert expected == decoded.body
    assert (KINDS[number].name, number, version, False) == (
        decoded.record_kind,
        decoded.key_version,
        decoded.value_version,
        decoded.is_tombstone,
    )
    assert key.get("group", key.get("groupId")) == decoded.group_id
    assert key.get("memberId") == decoded.member_id
    json.dumps(decoded.body, allow_nan=False)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
@settings(derandomize=True, max_examples=40)
@given(data=st.data())
def test_any_value_reads_back(layout, data):
    number, version, struct = layout
    unknown = data.draw(st.sampled_from((None, UNKNOWN_TAGS))) if is_flexible(number, version) else None
    check(layout, data.draw(values(KINDS[number].key)), data.draw(values(struct)), unknown)


@pytest.mark.parametrize("length", NAME_LENGTHS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_names_of_every_length_class_read_back(layout, length):
    number, _, struct = layout
    check(layout, filled(KINDS[number].key, length), filled(struct, length))


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_nulls_and_unknown_tags_read_back(layout):
    number, version, struct = layout
    unknown = UNKNOWN_TAGS if is_flexible(number, version) else None
    check(layout, filled(KINDS[number].key, 3), filled(struct, 3, null=True), unknown)


@pytest.mark.parametrize("number", KINDS, ids=lambda number: KINDS[number].name)
def test_a_null_value_is_a_tombstone(number):
    key = filled(KINDS[number].key, 5)
    decoded = decode_record(number.to_bytes(2) + written(KINDS[number].key, key, flexible=False), None)
    assert (True, None, {"key": key, "value": None}) == (decoded.is_tombstone, decoded.value_version, decoded.body)
