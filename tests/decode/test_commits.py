"""Offset commits decoded as columns have the values that the record decoder returns for each."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.decoding.commit_decoding import decode_commit_values
from pipelines.decoding.record_decoding import Quarantined, decode_commit_key, decode_record, is_offset_commit
from pipelines.decoding.wire import uuid_text
from schemas.states import QuarantineReason
from testing.records.samples import damaged, golden
from testing.records.writing import KINDS, UNKNOWN_TAGS, record, values

KEY = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x07"
REASONS = [None, *QuarantineReason]
VERSIONS = KINDS[1].versions


def value_of(version: int, declared: dict, unknown: dict[int, bytes] | None = None) -> bytes:
    layout = VERSIONS[version].layouts[0]
    key = {"group": "g", "topic": "t", "partition": 7}
    return record(1, version, layout, key, declared, unknown)[1]


def one(version: int, metadata: str, **more) -> bytes:
    declared = {"offset": 2**40, "leaderEpoch": 5, "metadata": metadata, "commitTimestamp": 1_795_246_067_091}
    return value_of(version, declared | {"expireTimestamp": -1} | more)


def row(raw: bytes | None) -> tuple:
    """(is tombstone, error, offset, epoch, time, topic id) by the record decoder."""
    decoded = decode_record(KEY, raw)
    if isinstance(decoded, Quarantined):
        return (False, decoded.reason, decoded.detail)
    if decoded.is_tombstone:
        return (True, None)
    declared = decoded.body["value"]
    topic_id = declared.get("topicId", uuid_text(bytes(16)))
    return (False, None, declared["offset"], declared.get("leaderEpoch", -1), declared["commitTimestamp"], topic_id)


def rows(raws: list[bytes | None]) -> list[tuple]:
    """The same by columns."""
    found = decode_commit_values(raws)
    assert {len(raws)} == {len(getattr(found, name)) for name in found.__slots__ if name != "why"}
    out = []
    for at in range(len(raws)):
        if found.error[at]:
            why = found.quarantined(at)
            assert why.reason == REASONS[found.error[at]]
            out.append((bool(found.is_tombstone[at]), why.reason, why.detail))
        elif found.is_tombstone[at]:
            out.append((True, None))
        else:
            numbers = (found.committed_offset[at], found.leader_epoch[at], found.commit_timestamp[at])
            out.append((False, None, *map(int, numbers), uuid_text(found.topic_id[at].tobytes())))
    return out


COMMON = [
    None,
    *(
        one(version, metadata)
        for version in VERSIONS
        for metadata in ("", "m" * 40, "é", "x" * 126, "y" * 127, "z" * 300)
    ),
    one(4, "", topicId=uuid_text(bytes(range(16)))),
    one(4, "streams", topicId=uuid_text(bytes(range(16)))),
    value_of(4, {"offset": 1, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 2}, UNKNOWN_TAGS),
    value_of(4, {"offset": -1, "leaderEpoch": -1, "metadata": "", "commitTimestamp": -1, "topicId": "A" * 22}),
    b"",
    b"\x00",
    b"\x00\x04",
    b"\x00\x05" + bytes(22),
    b"\xff\xff" + bytes(30),
    b"\x00\x03" + bytes(12) + b"\xff\xff" + bytes(8),
    b"\x00\x03" + bytes(12) + b"\x7f\xff" + bytes(8),
    b"\x00\x04" + bytes(12) + b"\x00" + bytes(9),
    b"\x00\x04" + bytes(12) + b"\x02\xff" + bytes(9),
]


def test_common_and_odd_shapes_side_by_side_read_as_records():
    assert list(map(row, COMMON)) == rows(COMMON)
    assert list(map(row, COMMON[::-1])) == rows(COMMON[::-1])


@pytest.mark.parametrize("raw", COMMON, ids=range(len(COMMON)))
def test_a_shape_alone_and_all_its_cuts_read_as_records(raw):
    cuts = [raw] if raw is None else [raw[:end] for end in range(len(raw) + 1)] + [raw + bytes(n) for n in range(1, 65)]
    assert [row(cut) for cut in cuts] == rows(cuts)


drawn = st.sampled_from(sorted(VERSIONS)).flatmap(
    lambda version: st.builds(
        value_of,
        st.just(version),
        values(VERSIONS[version].layouts[0]),
        st.sampled_from((None, UNKNOWN_TAGS)) if version == 4 else st.none(),
    )
)


@settings(derandomize=True, max_examples=300)
@given(st.lists(st.none() | drawn | st.binary(max_size=60), max_size=8))
@example([])
def test_any_values_read_as_records(raws):
    assert list(map(row, raws)) == rows(raws)


def test_damaged_commits_read_as_records():
    commits = [(KEY, raw) for raw in COMMON if raw]
    raws = [value for _, value in damaged(commits, 5_000, Random(2))]
    assert list(map(row, raws)) == rows(raws)


def test_real_commits_read_as_records():
    raws = [value for key, value in golden() if is_offset_commit(key)]
    assert 50 < len(raws)
    assert [] == [found for found in rows(raws) if found[1] is not None]
    assert list(map(row, raws)) == rows(raws)


def test_a_commit_key_reads_as_its_record_does():
    assert ("g", "t", 7) == decode_commit_key(KEY) == decode_commit_key(b"\x00\x00" + KEY[2:])
    for key, _ in damaged([(KEY, None)], 500, Random(4)):
        if is_offset_commit(key):
            found, whole = decode_commit_key(key), decode_record(key, None)
            declared = whole if isinstance(whole, Quarantined) else tuple(whole.body["key"].values())
            assert declared == found


def test_only_types_0_and_1_are_commits():
    assert [True, True, False, False, False, False] == [
        is_offset_commit(key) for key in (b"\x00\x00", KEY, b"\x00\x02\x00", b"\x01\x00", b"\x00", None)
    ]


def test_columns_have_the_types_of_the_table():
    found = decode_commit_values(COMMON)
    assert (np.int64, np.int32, np.int64, 16) == (
        found.committed_offset.dtype,
        found.leader_epoch.dtype,
        found.commit_timestamp.dtype,
        found.topic_id.itemsize,
    )
