"""Capture folders with damaged or hostile files: each is read, quarantined by line, or rejected with a sentence."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.captures.recording import Capture
from jobs.replay import bronze_of, split
from jobs.tables.new_rows import NewRows
from schemas.bronze import BRONZE
from testing.fuzzing.findings import Findings, fuzzed, memory_folder
from testing.fuzzing.mutations import MESSAGE, STRANGE, VALUES
from testing.recordings import CAPTURES

RECORDED = CAPTURES / "outage"
LIMIT_MB = 16
MEMBERS = 8
"""Lines, records and observations of the recorded capture. A small one can be read a thousand times a second."""

NAMES = (
    "broker-1.log",
    "controller-²",
    "connect-worker-0.log",
    "broker-1.log.gz",
    "broker-\x1b[31m.log",
    "admin.jsonl.gz",
)
SOURCE = {"meta.json": [], "offsets.parquet": ["offsets"], "admin.jsonl": ["admin"]}
TYPES = (
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.large_binary(),
    pa.list_(pa.int32()),
)
PIECES = (b"[" * 3000, b'{"a":' * 3000, b"NaN", b"1e999", b"9" * 5000, b'"\\ud800"', b"\0", b"{}", b"null\n")
COMPRESSIONS = ("none", "snappy", "gzip", "zstd", "lz4")


class Input(NamedTuple):
    """One file that replaces the recorded one."""

    name: str
    content: bytes


def recorded() -> dict[str, bytes]:
    """Return the files of a small capture by name."""
    table = pq.read_table(RECORDED / "offsets.parquet").slice(0, MEMBERS)
    seen = gzip.decompress((RECORDED / "admin.jsonl.gz").read_bytes()).splitlines(keepends=True)
    line = f"[2026-11-21 06:41:02,803] INFO {MESSAGE} (org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
    return {
        "meta.json": (RECORDED / "meta.json").read_bytes(),
        "offsets.parquet": _parquet(table, "zstd"),
        "admin.jsonl": b"".join(seen[:MEMBERS]),
        "broker-1.log": line.encode() * 3 + b"other line\n" * MEMBERS,
    }


def inputs(random: Random, real: dict[str, bytes]) -> Iterator[Input]:
    """Yield inputs without end. Every file is changed equally often."""
    while True:
        name = random.choice(list(real))
        content = random.choice(CHANGES[name])(real[name], random)
        if name == "broker-1.log":
            name = random.choice(NAMES)
        if name.endswith(".gz"):
            content = gzip.compress(content, 1)
            content = _bytes(content, random) if random.random() < 0.5 else content * random.choice((1, 1, 3))
        yield Input(name, content)


def _bytes(raw: bytes, random: Random) -> bytes:
    out = bytearray(raw)
    at = random.randrange(len(out) + 1)
    match random.randrange(6):
        case 0:
            del out[at:]
        case 1:
            out[at : at + random.randint(0, 8)] = random.randbytes(random.randint(0, 8))
        case 2:
            out += random.randbytes(random.randint(1, 40))
        case 3:
            out[at:at] = out[at : at + 64] * random.randint(1, 200)
        case 4:
            out[:0] = random.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\r\n", b"PAR1", b"\x1f\x8b"))
        case _:
            for _ in range(random.choice((1, 2, 16)) if out else 0):
                out[random.randrange(len(out))] ^= 1 << random.randrange(8)
    return bytes(out)


def _json_values(raw: bytes, random: Random) -> bytes:
    """Replace a value in one line of JSON by one of another type or size."""
    lines = raw.splitlines()
    if len(lines) > 1 and raw.startswith(b'{"observed'):
        at = random.randrange(len(lines))
        lines[at] = _json_values(lines[at], random)
        return b"\n".join(lines)
    content = json.loads(raw)
    place = content
    while True:
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner) or random.random() < 0.3:
            break
        place = inner
    place[key] = random.choice((*VALUES, random.choice(STRANGE) * random.choice((1, 300)), _nested(random)))
    try:
        return json.dumps(content).encode()
    except ValueError:  # an integer with more digits than Python prints
        return raw


def _nested(random: Random) -> Any:
    found: Any = random.choice(VALUES)
    for _ in range(random.choice((1, 20, 40, 400))):
        found = [found] if random.random() < 0.5 else {"a": found}
    return found


def _json_text(raw: bytes, random: Random) -> bytes:
    at = random.randrange(len(raw) + 1)
    piece = random.choice(
        (b"[" * 3000, b'{"a":' * 3000, b"NaN", b"1e999", b"9" * 5000, b'"\\ud800"', b"\0", b"{}", b"null\n")
    )
    return raw[:at] + piece + raw[at + random.choice((0, 0, 1, 20)) :]


def _table(raw: bytes, random: Random) -> bytes:
    """Return the records with a column missing, doubled, of another type, or with values that Kafka never writes."""
    table = pq.read_table(io.BytesIO(raw))
    at = random.randrange(table.num_columns)
    name, kind = table.column_names[at], random.choice(TYPES)
    match random.randrange(5):
        case 0:
            table = table.drop_columns([name])
        case 1:
            table = table.append_column(name, table.column(at))
        case 2:
            numbers = [random.choice((None, -1, 0, 2**31 - 1, 2**63 - 1, -(2**63))) for _ in range(len(table))]
            table = table.set_column(at, name, pa.array(numbers, pa.int64()))
        case 3:
            entries = pa.array([bytes(random.choice((1, 100_000)))], pa.binary())
            blob = pa.DictionaryArray.from_arrays(pa.array([0] * len(table), pa.int32()), entries)
            table = table.set_column(at, name, blob)
        case _:
            table = table.set_column(at, name, pa.nulls(len(table), kind))
    return _parquet(table, random.choice(COMPRESSIONS), random.choice((1, 7, 1_000)))


def _parquet(table: pa.Table, compression: str, rows: int = 1_000) -> bytes:
    # No broken statistics: they make Arrow abort the process. `replay` first reads the file in a separate process.
    out = io.BytesIO()
    pq.write_table(table, out, compression=compression, row_group_size=rows, write_statistics=False)
    return out.getvalue()


CHANGES: dict[str, tuple[Callable[[bytes, Random], bytes], ...]] = {
    "meta.json": (_bytes, _json_values, _json_text),
    # No broken metadata: it may abort the process. Only `replay` survives that, because it uses a separate process.
    "offsets.parquet": (_table,),
    "admin.jsonl": (_bytes, _json_values, _json_text),
    "broker-1.log": (_bytes,),
}


def read(folder: Path, each: Input) -> str:
    """Read a capture with this file, up to the rows of bronze; return the outcome."""
    file = folder / each.name
    before = file.read_bytes() if file.exists() else None
    file.write_bytes(each.content)
    try:
        capture = Capture(folder, LIMIT_MB)
        (batch,) = split(capture, SOURCE.get(each.name, ["log"]), 1, None)
        rows = bronze_of(batch, "c", capture.meta)
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)
    for table in BRONZE:
        NewRows.of(table, rows.get(table.name, []))
    return "read, with rows in quarantine" if rows["quarantine"] else "read"


def fuzz_captures(count: int, random: Random) -> Findings:
    """Read `count` captures with one changed file each."""
    real = recorded()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        folder = Path(name)
        for file, content in real.items():
            (folder / file).write_bytes(content)
        return fuzzed(count, inputs(random, real), partial(read, folder))
