"""A column of byte strings in one buffer reads like a list of them, and is decoded alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bronze_batch import Records, bronze
from pipelines.decoding.flat_bytes import PAD, FlatBytes
from testing.records.samples import golden, written_ones

STRINGS = st.lists(st.none() | st.binary(max_size=40), max_size=30)
KNOWN = [*golden(), *written_ones(newest_only=True)]


def scattered(strings) -> FlatBytes:
    """The same strings in reverse order in memory, with other bytes between them, as `chosen` leaves them."""
    flat = FlatBytes.of([part for each in reversed(strings) for part in (b"\xff\x00between", each)])
    return flat.chosen(np.arange(len(flat) - 1, 0, -2))


@given(STRINGS)
def test_it_is_the_same_sequence(strings) -> None:
    for flat in (FlatBytes.of(strings), scattered(strings)):
        assert strings == list(flat) == [flat[at] for at in range(len(flat))] == list(flat[:])
        assert len(strings) == len(flat)
        assert sum(map(len, filter(None, strings))) == flat.bytes_in_all()
        assert pa.array(strings, pa.large_binary()).equals(flat.arrow())


@given(st.lists(STRINGS, min_size=1, max_size=4), st.data())
def test_pieces_are_joined_and_chosen_from(pieces, data) -> None:
    together = [string for piece in pieces for string in piece]
    joined = FlatBytes.joined([FlatBytes.of(piece) for piece in pieces])
    assert together == list(joined)
    assert bytes(joined.data[-len(PAD) :]) == PAD
    at = data.draw(st.lists(st.sampled_from(range(len(together))), max_size=10)) if together else []
    assert [together[i] for i in at] == list(joined.chosen(np.array(at, np.int64)))


@st.composite
def records(draw):
    """Known records whole, cut or damaged, tombstones, null keys and arbitrary bytes."""
    key, value = draw(st.sampled_from(KNOWN) | st.tuples(st.none() | st.binary(max_size=60), st.none() | st.binary()))
    match draw(st.integers(0, 5)):
        case 0:
            value = None
        case 1:
            value = (value or b"")[: draw(st.integers(0, 60))]
        case 2:
            key = (key or b"")[: draw(st.integers(0, 30))]
        case 3:
            at = draw(st.integers(0, max(0, len(value or b"") - 1)))
            value = (value or b"")[:at] + draw(st.binary(max_size=3)) + (value or b"")[at + 1 :]
        case _:
            pass
    return draw(st.integers(0, 2)), draw(st.sampled_from([-1, 0, 1_795_262_500_000, 2**62])), key, value


@given(st.lists(records(), max_size=25))
def test_flat_records_become_the_same_rows(given_ones) -> None:
    partition, timestamp, key, value = map(list, zip(*given_ones, strict=True)) if given_ones else ([], [], [], [])
    shared = {
        "log_epoch": np.zeros(len(key), np.int32),
        "partition": np.array(partition, np.int32),
        "offset": np.arange(len(key)),
        "timestamp_ms": np.array(timestamp, np.int64),
    }
    expected = bronze(Records(**shared, key=key, value=value), cluster="c")
    for flat in (FlatBytes.of, scattered):
        found = bronze(Records(**shared, key=flat(key), value=flat(value)), cluster="c")
        assert {name: rows.to_pylist() for name, rows in expected.items()} == {
            name: rows.to_pylist() for name, rows in found.items()
        }
