"""Mutated records and log lines: real ones, changed as corruption, bugs and newer releases would change them."""

from __future__ import annotations

import gzip
import json
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow.parquet as pq

from testing.recordings import CAPTURES, WORDINGS
from testing.records.samples import golden

Record = tuple[bytes, bytes | None]
LENGTHS = (*(struct.pack(code, n) for code in (">h", ">i") for n in (-1, -2, 0x7FFF)), b"\x7f\xff\xff\xff")
VARINTS = (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\xff" * 10, b"\x80" * 40, b"\x80\x80\x80\x80\x00")
STRANGE = (
    "\x00",
    "\r",
    "\u2028",
    "\u202e",
    "\ufffd",
    "\u0665",
    "😀",
    "{",
    "[",
    '"',
    "\\ud800",
    "(reason: ",
    " in group ",
    "9" * 30,
)
ENVELOPES = (
    lambda line: {"kind": "log", "source": "broker", "at": 0, "line": line, "broker_id": 1},
    lambda line: {"message": line, "fields": {"broker_id": 1}},
    lambda line: {"log": json.dumps({"message": line}), "stream": "stdout"},
    lambda line: {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": line}}]}]}]},
    lambda line: {"@timestamp": "2026-11-21T10:00:00.123Z", "log.level": "INFO", "log.logger": LOGGER, "message": line},
    lambda line: {"instant": {"epochSecond": 1_790_000_000, "nanoOfSecond": 5}, "loggerName": LOGGER, "message": line},
    lambda line: {"timestamp": 1_790_000_000_000, "logger": LOGGER, "message": MESSAGE, "broker.id": line},
    lambda line: {"kind": "admin", "source": "poll", "at": 1_790_000_000_000, "group_id": "g", "state": line},
    lambda line: {"kind": "mark", "text": line, "at": "2026-11-21T10:00:00Z", "group": "g"},
)
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
MESSAGE = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] Stabilized group g generation 4 with 2 members."
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, -(10**400), 1e308, -1e308, float("nan"), float("inf"), "", "\ud800",
    [], {}, [[]], [None],
)  # fmt: skip


def real_records() -> list[list[Record]]:
    """Return distinct records of the captures and the golden ones, grouped by type and value version."""
    found: dict[tuple[bytes, bytes], dict[Record, None]] = defaultdict(dict)
    for key, value in golden():
        found[key[:2], (value or b"")[:2]][key, value] = None
    for file in sorted(CAPTURES.glob("*/offsets.parquet")):
        table = pq.read_table(file, columns=["key", "value"])
        for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
            found[key[:2], (value or b"")[:2]][key, value] = None
    return [list(records) for _, records in sorted(found.items())]


def mutated_records(random: Random) -> Iterator[Record]:
    """Yield records without end. Every kind is equally frequent."""
    kinds = real_records()
    while True:
        key, value = random.choice(random.choice(kinds))
        if value is None or random.random() < 0.2:
            yield _mutated(key, random, kinds), value
        else:
            yield key, _mutated(value, random, kinds)


def _mutated(raw: bytes, random: Random, kinds: list[list[Record]]) -> bytes:
    if not raw:
        return random.randbytes(random.randint(0, 8))
    change = random.choice(CHANGES)
    return change(raw, random, kinds) if change is _spliced else change(raw, random)


def _flipped(raw: bytes, random: Random) -> bytes:
    out = bytearray(raw)
    for _ in range(random.randint(1, random.choice((1, 2, 16)))):
        out[random.randrange(len(out))] ^= 1 << random.randrange(8)
    return bytes(out)


def _spliced(raw: bytes, random: Random, kinds: list[list[Record]]) -> bytes:
    """Return the start of one record with the end of another."""
    other = random.choice(random.choice(kinds))
    tail = other[1] or other[0]
    return raw[: random.randrange(len(raw))] + tail[random.randrange(len(tail)) :]


def _cut(raw: bytes, random: Random) -> bytes:
    return raw[: random.randrange(len(raw))]


def _with_length(raw: bytes, random: Random) -> bytes:
    at, length = random.randrange(len(raw)), random.choice(LENGTHS)
    return raw[:at] + length + raw[at + len(length) :]


def _with_varint(raw: bytes, random: Random) -> bytes:
    at = random.randrange(len(raw))
    return raw[:at] + random.choice(VARINTS) + raw[at + random.randint(0, 1) :]


def _nested(raw: bytes, random: Random) -> bytes:
    """Return the record with a piece repeated many times, as if a struct contained itself."""
    start = random.randrange(len(raw))
    piece = raw[start : start + random.randint(1, 64)]
    return raw[:start] + piece * random.randint(2, 200) + raw[start:]


def _of_another_version(raw: bytes, random: Random) -> bytes:
    """Change the leading int16, which is a key's type or a value's version."""
    return struct.pack(">h", random.choice((random.randint(-3, 30), random.randint(-(2**15), 2**15 - 1)))) + raw[2:]


CHANGES: tuple[Callable[..., bytes], ...] = (
    _flipped, _spliced, _cut, _with_length, _with_varint, _nested, _of_another_version,
)  # fmt: skip


def real_lines() -> list[str]:
    """Return the log lines of the captures, and one of every wording."""
    wordings = WORDINGS.read_text(encoding="utf-8").splitlines()
    wordings_read = (json.loads(each) for each in wordings)
    found = dict.fromkeys(f"[2026-11-21 06:41:02,803] INFO {w['message']} ({w['logger']})" for w in wordings_read)
    for file in sorted(CAPTURES.glob("*/*.log.gz")):
        with gzip.open(file, "rt", encoding="utf-8", errors="replace") as text:
            found |= dict.fromkeys(line.rstrip("\n") for line in text if "oordinator" in line or "ontroller" in line)
    return list(found)


def mutated_lines(random: Random) -> Iterator[bytes]:
    """Yield messages of the events topic without end. Two in five are a shipper's JSON, which may be mutated too."""
    lines = real_lines()
    while True:
        line = _mutated_text(random.choice(lines), random, lines)
        if random.random() < 0.6:
            yield line.encode("utf-8", "surrogatepass")
            continue
        envelope = random.choice(ENVELOPES)(line)
        if random.random() < 0.3:
            _replace_a_value(envelope, random)
        text = json.dumps(envelope)
        if random.random() < 0.3:
            text = _mutated_text(text, random, lines)
        yield text.encode("utf-8", "surrogatepass")


def _replace_a_value(content: Any, random: Random) -> None:
    """Replace some value inside by one of another type or size."""
    while isinstance(content, dict | list) and content:
        at = random.choice(list(content) if isinstance(content, dict) else range(len(content)))
        if not (isinstance(content[at], dict | list) and random.random() < 0.7):
            content[at] = random.choice(VALUES)
            return
        content = content[at]


def _mutated_text(line: str, random: Random, lines: list[str]) -> str:
    at = random.randrange(len(line)) if line else 0
    head, tail = line[:at], line[at:]
    match random.randrange(7):
        case 0:
            tail = ""
        case 1:
            other = random.choice(lines)
            tail = other[random.randrange(len(other)) if other else 0 :]
        case 2:
            head += random.choice(STRANGE) * random.choice((1, 1, 3, 2_000))
        case 3:
            head += tail[: random.randint(1, 40)] * random.randint(2, 200)
        case 4:
            tail = _flipped((tail or "(").encode(), random).decode("utf-8", "replace")
        case 5:
            tail = str(random.choice((-1, 2**31, 2**63, 10**40))) + tail[1:]
    return head + tail
