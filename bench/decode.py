"""Records decoded per second on one core: offset commits as columns, their keys, and group records.

`python bench/decode.py`
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from pipelines.decoding.commit_decoding import decode_commit_values
from pipelines.decoding.record_decoding import decode_commit_key, decode_record

BATCH = 100_000
ROUNDS = 7
MEMBERS, PARTITIONS = 12, 6


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def blob(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


def commit_keys() -> list[bytes]:
    """Return the keys of 100 groups that read one topic of 12 partitions, repeated as often as each group commits."""
    keys = [
        b"\x00\x01" + text(f"orders-loader-{group}") + text("orders-in") + struct.pack(">i", partition)
        for group in range(100)
        for partition in range(12)
    ]
    return [keys[at % len(keys)] for at in range(BATCH)]


def commit_values(metadata: bytes = b"") -> list[bytes | None]:
    """Return values as Kafka 4.1 and later write them: version 4 with the topic id."""
    size = bytes([len(metadata) + 1])
    return [
        struct.pack(">hqi", 4, at, 7) + size + metadata + struct.pack(">q", at) + b"\x01\x00\x10" + bytes(range(16))
        for at in range(BATCH)
    ]


def group_record() -> tuple[bytes, bytes]:
    """Return key and value of a GroupMetadata record, version 3, of a cooperative group."""
    owned = (
        struct.pack(">i", 1) + text("orders-in") + struct.pack(f">{PARTITIONS + 1}i", PARTITIONS, *range(PARTITIONS))
    )
    subscription = struct.pack(">hi", 3, 1) + text("orders-in") + blob(struct.pack(">i", 41)) + owned
    subscription += struct.pack(">ih", 41, -1)
    assignment = struct.pack(">h", 3) + owned + struct.pack(">i", -1)
    members = b"".join(
        text(f"orders-loader-{at}-0b1f4f0e-7c7f-4a55-9c0e-6d7f5d1f2a3b")
        + struct.pack(">h", -1)
        + text(f"orders-loader-{at}")
        + text("/10.20.30.40")
        + struct.pack(">ii", 300_000, 45_000)
        + blob(subscription)
        + blob(assignment)
        for at in range(MEMBERS)
    )
    head = b"\x00\x03" + text("consumer") + struct.pack(">i", 42) + text("cooperative-sticky") + text("orders-loader-0")
    return b"\x00\x02" + text("orders-loader"), head + struct.pack(">qi", 1_795_246_067_091, MEMBERS) + members


def cached(keys: list[bytes]) -> dict[bytes, object]:
    known: dict[bytes, object] = {}
    for key in keys:
        if key not in known:
            known[key] = decode_commit_key(key)
    return known


def repeated(key: bytes, value: bytes, *, times: int) -> None:
    for _ in range(times):
        decode_record(key, value)


def report(name: str, count: int, work: Callable[[], object]) -> None:
    """Print the best of several rounds in processor time, which other work on the machine does not lengthen."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    print(f"{name:44}{count / min(seconds):>14,.0f} /s{min(seconds) / count * 1e6:>10.2f} µs each")


def main() -> None:
    keys, plain, tagged = commit_keys(), commit_values(), commit_values(b"AgAAAZ8rN1k=")
    group = group_record()
    report("commit values", BATCH, lambda: decode_commit_values(plain))
    report("commit values with metadata", BATCH, lambda: decode_commit_values(tagged))
    report("commit keys, kept by raw key", BATCH, lambda: cached(keys))
    report("commit keys, each decoded", len(keys), lambda: list(map(decode_commit_key, keys)))
    report("commits: values and kept keys", BATCH, lambda: (cached(keys), decode_commit_values(plain)))
    report(f"GroupMetadata of {MEMBERS} members", 500, lambda: repeated(*group, times=500))


if __name__ == "__main__":
    main()
