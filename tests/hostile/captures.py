"""Hostile captures: a recorded one with one file replaced. Each function changes the folder."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

RECORDED = Path(__file__).parents[1] / "captures" / "outage"
META = json.loads((RECORDED / "meta.json").read_text())
LINE = (
    "[2026-11-21 06:41:02,803] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=3] Stabilized group g "
    "generation 4 with 2 members. (org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
)


def folder_with(place: Path, change) -> Path:
    folder = place / "capture"
    shutil.copytree(RECORDED, folder)
    change(folder)
    return folder


def meta(**fields):
    return content("meta.json", json.dumps(META | fields).encode())


def content(name: str, raw: bytes):
    def change(folder: Path) -> None:
        (folder / name).write_bytes(raw)

    return change


def admin(raw: bytes):
    return content("admin.jsonl.gz", gzip.compress(raw))


def fifo(name: str):
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def link(name: str, target: str):
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def subfolder(name: str):
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return change


def unix_socket(name: str):
    def change(folder: Path) -> None:
        before = Path.cwd()
        os.chdir(folder)  # the path of a socket must be short
        try:
            with socket.socket(socket.AF_UNIX) as opened:
                opened.bind(name)
        finally:
            os.chdir(before)

    return change


def records(**columns):
    """offsets.parquet with other columns; a column that is None is left out."""

    def change(folder: Path) -> None:
        rows = max(len(column) for column in columns.values() if column is not None)
        real = {
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp_ms": pa.array([1_790_000_000_000] * rows, pa.int64()),
            "key": pa.array([b"k"] * rows, pa.binary()),
            "value": pa.array([b"v"] * rows, pa.binary()),
        }
        table = pa.table({name: column for name, column in (real | columns).items() if column is not None})
        pq.write_table(table, folder / "offsets.parquet", compression="zstd", store_schema=False)

    return change


def twice(folder: Path) -> None:
    table = pq.read_table(folder / "offsets.parquet")
    pq.write_table(table.append_column("key", table["key"]), folder / "offsets.parquet")


def prefix_encoded(folder: Path) -> None:
    """Each value repeats all of the one before, which takes no bytes in the file."""
    table = pq.read_table(folder / "offsets.parquet")
    table = table.set_column(5, "value", pa.array([b"x" * 100_000] * len(table), pa.binary()))
    encodings = {"value": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, folder / "offsets.parquet", use_dictionary=False, column_encoding=encodings)


def patched(name: str, change):
    def patch(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))

    return patch


def repeated(value: bytes, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([value], pa.binary()))


REFUSED = {
    "meta is a list": (content("meta.json", b"[]"), "is not a JSON object"),
    "meta is null": (content("meta.json", b"null"), "is not a JSON object"),
    "meta is deep": (content("meta.json", b'{"format":1,"a":' + b"[" * 9999 + b"]" * 9999 + b"}"), "more than 32 deep"),
    "meta has a huge number": (content("meta.json", b'{"format":1,"started_ms":' + b"9" * 5000 + b"}"), "64 bits"),
    "meta has a key twice": (content("meta.json", b'{"format":1,"format":1}'), "the same key twice"),
    "meta has half a character": (content("meta.json", b'{"format":1,"scenario":"\\ud800"}'), "surrogate pair"),
    "meta is UTF-16": (content("meta.json", json.dumps(META).encode("utf-16")), "not UTF-8"),
    "meta has the format true": (meta(format=True), "capture format True"),
    "an unknown zone": (meta(log_time_zone="Mars"), "no time zone 'Mars'"),
    "a zone that is a path": (meta(log_time_zone="../../../etc/passwd"), "no time zone"),
    "a zone that is a list": (meta(log_time_zone=["UTC"]), "log_time_zone must be a text"),
    "a layout that is a list": (meta(log_pattern=["x"]), "log_pattern must be a text"),
    "a layout of its own": (meta(log_pattern="(?P<at>(a+)+)(?P<logger>b)(?P<message>c)"), "events_layout of a cluster"),
    "a scenario that is an object": (meta(scenario={}), "scenario must be a text"),
    "a start that is NaN": (meta(started_ms=float("nan")), "NaN, which is not valid JSON"),
    "a start of 1e300": (meta(started_ms=1e300), "started_ms is not a time"),
    "a start before 1970": (meta(started_ms=-1), "started_ms is not a time"),
    "settings that are a list": (meta(broker_overrides=[1]), "broker_overrides must be an object"),
    "settings that are nested": (meta(broker_overrides={"a": {}}), "broker_overrides must be an object"),
    "meta is a pipe": (fifo("meta.json"), "a named pipe"),
    "meta is a link": (link("meta.json", "/etc/passwd"), "a symbolic link"),
    "meta is endless": (link("meta.json", "/dev/zero"), "a symbolic link"),
    "a log is a pipe": (fifo("broker-2.log"), "a named pipe"),
    "a log is a link": (link("broker-2.log", "/etc/passwd"), "a symbolic link"),
    "a log is a folder": (subfolder("broker-2.log"), "a folder"),
    "a log is the capture": (link("broker-2.log", "."), "a symbolic link"),
    "a log is a socket": (unix_socket("broker-2.log"), "a socket"),
    "a log is UTF-16": (content("broker-2.log", LINE.encode("utf-16")), "is UTF-16"),
    "a name with a strange digit": (content("broker-².log", b"x\n"), "unusual name (broker-².log)"),
    "a name with an escape sequence": (content("broker-1\x1b[31m\nok.log", b"x\n"), "(broker-1␛[31m␊ok.log)"),
    "a name with a direction mark": (content("broker-\u202e.log", b"x\n"), "(broker-⟨202E⟩.log)"),
    "gz that is cut": (patched("broker-1.log.gz", lambda raw: raw[:200]), "not a valid gzip file"),
    "gz that is text": (content("broker-1.log.gz", b"hello\n"), "not a valid gzip file"),
    "gz with a wrong checksum": (patched("broker-1.log.gz", lambda raw: raw[:-6] + b"abcdef"), "not a valid gzip file"),
    "gz with a tail": (patched("broker-1.log.gz", lambda raw: raw + b"tail"), "not a valid gzip file"),
    "observations twice": (content("admin.jsonl", b""), "keep one of them"),
    "a log twice": (content("broker-1.log", b""), "has both broker-1.log and broker-1.log.gz: keep one of them"),
    "records are a pipe": (fifo("offsets.parquet"), "a named pipe"),
    "records are a folder": (subfolder("offsets.parquet"), "a folder"),
    "records are text": (content("offsets.parquet", b"hello, this is text"), "not Parquet"),
    "records are cut": (patched("offsets.parquet", lambda raw: raw[: len(raw) // 2]), "not Parquet"),
    "records are encrypted": (patched("offsets.parquet", lambda r: b"PARE" + r[4:-4] + b"PARE"), "not Parquet"),
    "a footer of 2 GB": (patched("offsets.parquet", lambda raw: raw[:-8] + b"\xff\xff\xff\x7fPAR1"), "its footer"),
    "a partition that is text": (records(partition=pa.array(["a"])), "partition of type int32, but has string"),
    "a partition of 2**40": (records(partition=pa.array([2**40])), "partition of type int32, but has int64"),
    "a key that is a number": (records(key=pa.array([1])), "key of type binary, but has int64"),
    "a key that is nested": (records(key=pa.array([{"a": 1}])), "key of type binary, but has struct"),
    "no offsets": (records(offset=None, key=pa.array([b"k"], pa.binary())), "offset of type int64, but has none"),
    "a column twice": (twice, "but has binary, binary"),
    "an absent offset": (records(offset=pa.array([None], pa.int64())), "a record without a value"),
    "a negative offset": (records(offset=pa.array([-5])), "that Kafka never writes"),
    "a last offset": (records(offset=pa.array([2**63 - 1])), "that Kafka never writes"),
    "a repeated offset": (records(offset=pa.array([5, 5])), "holds the offset 5 of partition 0 twice"),
    "prefixes that multiply": (prefix_encoded, "DELTA_BYTE_ARRAY is not supported"),
}


def fatal(folder: Path) -> None:
    """A footer whose size statistics contradict the schema: Arrow 26 ends the process."""
    table = pq.read_table(RECORDED / "offsets.parquet")
    pq.write_table(table, folder / "offsets.parquet", row_group_size=1_000)
    raw = (folder / "offsets.parquet").read_bytes()
    size = int.from_bytes(raw[-8:-4], "little") + 8
    # Each column is optional; as required ones they would have no levels to count.
    footer = raw[-size:].replace(b"\x25\x02\x18\x03key", b"\x25\x00\x18\x03key")
    (folder / "offsets.parquet").write_bytes(raw[:-size] + footer)


REFUSED["a footer that is fatal to Arrow"] = (fatal, "Arrow cannot read its metadata")

READ = {
    "a byte order mark and CRLF": (
        content("meta.json", b"\xef\xbb\xbf" + json.dumps(META, indent=1).replace("\n", "\r\n").encode()),
        0,
    ),
    "gz of two members": (patched("broker-1.log.gz", lambda raw: raw + gzip.compress(b"x\n")), 0),
    "a broker id beyond 32 bits": (content("broker-99999999999999999999.log", LINE.encode()), 0),
    "offsets that go backwards": (records(offset=pa.array([5, 4])), 2),
    "impossible times": (records(timestamp_ms=pa.array([-(2**63), 2**63 - 1])), 2),
    "many partitions": (records(partition=pa.array(range(20_000), pa.int32())), 20_000),
    "observations that are no objects": (admin(b'[]\n5\nnull\n"x"\n'), 4),
    "observations that are deep": (admin(b'{"a":' + b"[" * 99_999 + b"]" * 99_999 + b"}\n"), 1),
    "observations at impossible times": (
        admin(b'{"observed_at_ms":NaN}\n{"observed_at_ms":1e300}\n{"observed_at_ms":-1}\n{"observed_at_ms":"x"}\n'),
        4,
    ),
    "observations that are broken": (admin(b'{"a":\nnope\n\xff\xfe\n{"a":"\\ud800"}\n{"a":1,"a":2}\n'), 5),
    "observations of another shape": (
        admin(
            b'{"kind":"topic","topic":5,"partitions":7}\n'
            b'{"kind":"topic","topic":"t","partitions":[{"partition":1099511627776,"replicas":[1]}]}\n'
            b'{"kind":"reassignments","ongoing":{"a":1}}\n{"kind":"log_dirs","brokers":"x","replicas":[]}\n'
            b'{"kind":"end_offsets","topic":"t","ends":{"x":1}}\n{"kind":"broker_settings","settings":[1]}\n'
            b'{"kind":["x"],"source":{}}\n'
        ),
        7,
    ),
    "an observation of 9 MB": (admin(b'{"a":"' + b"x" * 9_000_000 + b'"}\n'), 1),
}
"""With the number of rows in quarantine."""

BOMBS = {
    "lines": content("broker-2.log.gz", gzip.compress(b"oordinator\n" * 4_000_000)),
    "one line": content("broker-2.log.gz", gzip.compress(b"a" * 200_000_000)),
    "gzip members": content("broker-2.log.gz", gzip.compress(b"") * 200_000),
    "JSON": admin((b"[" + b"[]," * 1_000_000 + b"[]]\n") * 20),
    "rows": records(partition=pa.array([0] * 2_000_000, pa.int32())),
    "pages": records(value=pa.array([bytes(1_000_000)] * 100, pa.binary())),
    "one entry of a dictionary": records(value=repeated(bytes(100_000), 50_000)),
    "a sparse file": lambda folder: os.truncate(folder / "meta.json", 50_000_000_000),
}
"""Files that unpack to much more than 64 MB."""
