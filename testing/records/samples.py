"""Records to try the decoder on: real ones, and some of every layout."""

from __future__ import annotations

import gzip
import json
from functools import cache
from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from schemas.records import KINDS
from testing.recordings import GOLDEN
from testing.records.writing import NAME_LENGTHS, UNKNOWN_TAGS, filled, record, values, versions, written

Record = tuple[bytes, bytes | None]


@cache
def golden() -> list[Record]:
    """Records that real brokers wrote."""
    return [_record(each) for each in _lines("records.jsonl.gz")]


@cache
def clients(capture: str | None = None) -> list[Record]:
    """Group and commit records of other people's clients, of one capture or of all."""
    return [_record(each) for each in _lines("clients.jsonl.gz") if capture in (None, each["capture"])]


def _lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / name, "rt") as lines:
        return [json.loads(line) for line in lines]


def _record(line: dict[str, Any]) -> Record:
    return bytes.fromhex(line["key"]), None if line["value"] is None else bytes.fromhex(line["value"])


@cache
def written_ones(*, newest_only: bool) -> list[Record]:
    """Some of every layout, drawn and filled, with and without unknown tags, and a tombstone of every type."""
    out: list[Record] = []
    for number, version, layout in versions():
        if newest_only and layout is not KINDS[number].versions[version].layouts[0]:
            continue
        schema = (number, version, layout)
        key = KINDS[number].key
        more = UNKNOWN_TAGS if KINDS[number].versions[version].flexible else None
        out += [record(*schema, filled(key, length), filled(layout, length), more) for length in NAME_LENGTHS[:-1]]
        out.append(record(*schema, filled(key, 2), filled(layout, 2, null=True)))
        out += [record(*schema, *both) for both in drawn(st.tuples(values(key), values(layout)), 12)]
    for number, kind in KINDS.items():
        out.append((number.to_bytes(2) + written(kind.key, filled(kind.key, 4), flexible=False), None))
    return out


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """The same examples in every run."""
    out: list[Any] = []

    @settings(max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(strategy)
    def collect(value: Any) -> None:
        out.append(value)

    collect()
    return out


def damaged(records: list[Record], count: int, random: Random) -> list[Record]:
    """Records of the given ones cut short, with flipped bits, with bytes overwritten, put in or appended."""
    out = []
    for _ in range(count):
        key, value = random.choice(records)
        if value is None or random.random() < 0.2:
            out.append((_damage(key, random), value))
        else:
            out.append((key, _damage(value, random)))
    return out


def _damage(raw: bytes, random: Random) -> bytes:
    at = random.randrange(len(raw))
    match random.randrange(5):
        case 0:
            return raw[:at]
        case 1:
            return raw + random.randbytes(random.randint(1, 64))
        case 2:
            return raw[:at] + random.choice((b"\xff", b"\x7f", b"\x80", b"\x00")) * random.randint(1, 8) + raw[at + 4 :]
        case 3:
            return raw[:at] + random.randbytes(random.randint(1, 6)) + raw[at:]
        case _:
            flipped = bytearray(raw)
            for _ in range(random.randint(1, 4)):
                flipped[random.randrange(len(raw))] ^= 1 << random.randrange(8)
            return bytes(flipped)
