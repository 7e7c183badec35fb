"""Any bytes are decoded or quarantined, quickly and in little memory."""

from __future__ import annotations

import json
import struct
import time
import tracemalloc
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.decoding.record_decoding import Decoded, Quarantined, decode_commit_key, decode_record, is_offset_commit
from schemas.records import EARLY_ACCESS, KINDS
from schemas.states import QuarantineReason
from testing.records.samples import damaged, golden, written_ones
from testing.records.writing import filled, uvarint, written

CUT = {QuarantineReason.TRUNCATED, QuarantineReason.INVALID_LENGTH}
SIZE = 1 << 17


def key_of(number: int) -> bytes:
    return number.to_bytes(2) + written(KINDS[number].key, filled(KINDS[number].key, 3), flexible=False)


def every_kind() -> list[tuple[bytes, bytes]]:
    """One golden or written record of each type and value version."""
    found = {(key[:2], value[:2]): (key, value) for key, value in written_ones(newest_only=True) if value}
    return list((found | {(key[:2], value[:2]): (key, value) for key, value in golden() if value}).values())


RECORDS = every_kind()
IDS = [f"{key[1]}-v{value[1]}" for key, value in RECORDS]


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_every_prefix_of_a_value_is_quarantined(record):
    key, value = record
    for end in range(len(value)):
        found = decode_record(key, value[:end])
        # A newer layout that is cut short can be a complete older layout; such a cut cannot be detected.
        if isinstance(found, Decoded):
            assert found.body.get("earlyAccess") or key[1] == 11
        else:
            assert found.reason in CUT


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_every_prefix_of_a_key_is_quarantined(record):
    key, value = record
    for end in range(len(key)):
        assert decode_record(key[:end], value).reason in CUT


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_bytes_after_the_last_field_are_quarantined(record):
    key, value = record
    for count in range(1, 65):
        assert QuarantineReason.TRAILING_BYTES == decode_record(key, value + bytes(count)).reason
        assert QuarantineReason.TRAILING_BYTES == decode_record(key + bytes(count), value).reason


def test_a_missing_key_has_a_reason_of_its_own():
    assert QuarantineReason.NULL_KEY == decode_record(None, b"").reason


def test_unknown_types_and_versions_are_reported_since_early_access():
    random = Random(1)
    for number in [*range(-(2**15), 0), *range(25, 2**15)]:
        assert (
            QuarantineReason.UNKNOWN_TYPE == decode_record(struct.pack(">h", number) + b"\x00\x01g", b"\x00\x00").reason
        )
    for number in EARLY_ACCESS:
        for value in (None, b"", b"\x00\x00\x01\x00"):
            assert QuarantineReason.EARLY_ACCESS == decode_record(number.to_bytes(2) + b"\x00\x01g", value).reason
    for number, kind in KINDS.items():
        some = (random.randint(-(2**15), 2**15 - 1) for _ in range(100))
        for version in {*range(-5, 15), *some} - set(kind.versions):
            found = decode_record(key_of(number), struct.pack(">h", version) + bytes(20))
            assert QuarantineReason.UNKNOWN_VERSION == found.reason


def test_ten_thousand_damaged_records_all_come_back():
    records = damaged([*golden(), *written_ones(newest_only=False)], 10_000, Random(3))
    found = Counter()
    for key, value in records:
        decoded = decode_record(key, value)
        if isinstance(decoded, Decoded):
            json.dumps(decoded.body, allow_nan=False)
            found["decoded"] += 1
        else:
            assert decoded.detail
            found[decoded.reason] += 1
        if is_offset_commit(key):
            decode_commit_key(key)
    assert 10_000 == found.total()
    assert {"decoded", *CUT, QuarantineReason.TRAILING_BYTES, QuarantineReason.INVALID_UTF8} <= found.keys()


@settings(derandomize=True, max_examples=400)
@given(st.sampled_from(sorted(KINDS)), st.binary(max_size=120), st.booleans())
def test_any_bytes_come_back(number, raw, as_value):
    found = decode_record(key_of(number), raw) if as_value else decode_record(number.to_bytes(2) + raw, None)
    assert isinstance(found, Decoded | Quarantined)


def greedy() -> dict[str, tuple[bytes, bytes]]:
    """Records that claim large sizes, or that contain as many of the smallest elements as fit."""
    members = written("string", "consumer", flexible=False) + struct.pack(">ihhq", 1, -1, -1, 0)
    head = struct.pack(">hihq", 0, 1, 1, 1)
    empty = (SIZE - 40) // 4
    return {
        "2^31 members": (key_of(2), b"\x00\x03" + members + struct.pack(">i", 2**31 - 1) + bytes(SIZE)),
        "2^32 topics": (key_of(7), b"\x00\x00" + uvarint(2**32 - 1) + bytes(SIZE)),
        "endless varint": (key_of(7), b"\x00\x00" + b"\xff" * SIZE),
        "2^32 tags": (key_of(3), b"\x00\x00" + bytes(4) + uvarint(2**32 - 1) + b"\x05\x00" * (SIZE // 2)),
        "empty strings": (key_of(16), b"\x00\x00" + uvarint(SIZE) + b"\x01" * (SIZE - 1) + bytes(17)),
        "empty lists": (
            key_of(23),
            b"\x00\x00\x00\x00\x00\x01\x02\x01\x01\x01\x01\x01\x01" + uvarint(empty) + b"\x01\x01\x01\x00" * empty,
        ),
        "half a member": (key_of(2), b"\x00\x03" + members + struct.pack(">i", 1) + head),
        "nested json": (
            key_of(2),
            b"\x00\x00" + written("string", "sr", flexible=False) + struct.pack(">ihhi", 1, -1, -1, 1)
            + written(KINDS[2].versions[0].layouts[0].fields[-1][1][0], registry(b"[" * SIZE), flexible=False),
        ),
    }  # fmt: skip


def registry(subscription: bytes) -> dict:
    names = {"memberId": "m", "clientId": "c", "clientHost": "/h", "sessionTimeout": 1}
    return names | {"subscription": subscription, "assignment": b""}


@pytest.mark.parametrize("name", greedy())
def test_greedy_records_cost_little(name):
    key, value = greedy()[name]
    tracemalloc.start()
    began = time.process_time()
    decode_record(key, value)
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 5
    assert peak < 200 * SIZE
