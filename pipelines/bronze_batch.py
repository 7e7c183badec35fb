"""Records of `__consumer_offsets` to bronze rows. The live source and `replay` both use this function."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from pipelines.arrow_types import row_type
from pipelines.coverage import Span
from pipelines.decoding.commit_decoding import decode_commit_values
from pipelines.decoding.flat_bytes import FlatBytes
from pipelines.decoding.record_decoding import (
    Decoded,
    Quarantined,
    decode_commit_key,
    decode_record,
    failed,
    is_offset_commit,
)
from pipelines.decoding.record_times import utc_datetime
from pipelines.limits import DEFAULT_LIMITS, Limits
from pipelines.offset_commits import CommitKey, Commits, runs
from schemas.bronze import COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from schemas.records import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pipelines.decoding.source_record import SourceRecord

Row = dict[str, Any]
_COMMIT, _BAD_COMMIT, _OTHER = 0, 1, 2

KEPT_KEYS, KEPT_KEY_BYTES = 200_000, 128
"""Maximum count of decoded keys that a process caches, and maximum length in bytes of a cached key.

Longer keys are decoded each time. The cached keys and their decoded names take at most 120 MB, whatever names clients
choose.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records as columns, ascending by offset within each partition. `headers` is empty if they were not requested."""

    log_epoch: NDArray[np.int32]
    partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    key: Sequence[bytes | None]
    value: Sequence[bytes | None]
    headers: Sequence[Sequence[tuple[str, bytes | None]]] = ()

    @classmethod
    def of(cls, records: Iterable[SourceRecord], log_epoch: int) -> Self:
        """Return records as columns; `records` ascend by offset within each partition."""
        partition, offset, timestamp_ms, key, value = tuple(zip(*records, strict=True)) or ((),) * 5
        return cls(
            log_epoch=np.full(len(offset), log_epoch, np.int32),
            partition=np.array(partition, np.int32),
            offset=np.array(offset, np.int64),
            timestamp_ms=np.array(timestamp_ms, np.int64),
            key=key,
            value=value,
        )

    def row(self, at: int, cluster: str) -> Row:
        """Return the columns that all tables with one row per record share."""
        return {
            "cluster": cluster,
            "log_epoch": int(self.log_epoch[at]),
            "source_partition": int(self.partition[at]),
            "source_offset": int(self.offset[at]),
            "record_at": utc_datetime(int(self.timestamp_ms[at])),
            "raw_key": self.key[at],
            "raw_value": self.value[at],
        }


def bronze_rows(
    records: Iterable[SourceRecord], *, cluster: str, log_epoch: int, limits: Limits = DEFAULT_LIMITS
) -> dict[str, list[Row]]:
    """Return rows by table name, including `coverage` for the offset range of each partition in `records`.

    `records` ascend by offset within each partition. Count of records read = group records + commits and tombstones
    (the sum of `commits`) + quarantined records.
    """
    read = Records.of(records, log_epoch)
    rows = {name: array.to_pylist() for name, array in bronze(read, cluster=cluster, limits=limits).items()}
    partitions, first = np.unique(read.partition, return_index=True)
    last = len(read.partition) - 1 - np.unique(read.partition[::-1], return_index=True)[1]
    ends = (partitions, read.offset[first], read.offset[last])
    spans = {
        partition: Span(partition=partition, log_epoch=log_epoch, from_offset=start, to_offset=end + 1)
        for partition, start, end in zip(*(column.tolist() for column in ends), strict=True)
    }
    count(spans, read, (row["source_partition"] for row in rows[QUARANTINE.name]))
    return rows | {COVERAGE.name: [span.row(cluster, OFFSETS_TOPIC) for span in spans.values()]}


def bronze(records: Records, *, cluster: str, limits: Limits = DEFAULT_LIMITS) -> dict[str, pa.StructArray]:
    """Return the rows of `coordinator_records`, `offset_commits` and `quarantine` by table name.

    Each record is in exactly one of these tables.
    """
    encoded = FlatBytes.of(records.key).arrow().dictionary_encode()
    keys = [_commit_key(key) for key in encoded.dictionary.to_pylist()]
    # A null key has the code -1, which selects the last entry.
    kinds = np.array([_kind(key) for key in keys] + [_OTHER], np.int8)
    codes = encoded.indices.fill_null(-1).to_numpy()
    kind = kinds[codes]

    refused = [(at, keys[codes[at]]) for at in np.flatnonzero(kind == _BAD_COMMIT).tolist()]
    group_rows, cuts = [], []
    for at in np.flatnonzero(kind == _OTHER).tolist():
        row = _group_row(records, at, cluster, limits.resources)
        if isinstance(row, Quarantined):
            refused.append((at, row))
            continue
        cuts.append((row["group_id"], at))
        group_rows.append(row)
    commits, bad = _commits(records, kind == _COMMIT, codes)
    refused += bad
    breaks = [(int(records.partition[at]), at) for at, _ in refused]
    commit_keys = [key if isinstance(key, tuple) else ("", "", 0) for key in keys]
    quarantined = [_quarantine(records, at, cluster, why) for at, why in refused]
    return {
        COORDINATOR_RECORDS.name: pa.array(group_rows, row_type(COORDINATOR_RECORDS)),
        OFFSET_COMMITS.name: runs(commits, commit_keys, cuts, breaks, records.value, cluster),
        QUARANTINE.name: pa.array(quarantined, row_type(QUARANTINE)),
    }


def stored_body(decoded: Decoded) -> str:
    """Return the column `body` of `coordinator_records`."""
    return json.dumps(decoded.body, separators=(",", ":"))


def _group_row(records: Records, at: int, cluster: str, max_resources: int) -> Row | Quarantined:
    decoded = decode_record(records.key[at], records.value[at], max_resources)
    if isinstance(decoded, Quarantined):
        return decoded
    try:
        body = stored_body(decoded)
    except Exception as error:  # noqa: BLE001 - untrusted bytes: an error must not stop the batch
        return failed(error)
    return records.row(at, cluster) | {
        "group_id": decoded.group_id,
        "record_kind": decoded.record_kind,
        "key_version": decoded.key_version,
        "value_version": decoded.value_version,
        "member_id": decoded.member_id,
        "is_tombstone": decoded.is_tombstone,
        "body": body,
    }


def count(spans: Mapping[int, Span], records: Records, quarantined: Iterable[int]) -> None:
    """Add the records to the spans of their partitions; `quarantined` has the partition of each quarantined record."""
    partitions, first, counts = np.unique(records.partition, return_index=True, return_counts=True)
    last = len(records.partition) - 1 - np.unique(records.partition[::-1], return_index=True)[1]
    for partition, a, b, n in zip(*(column.tolist() for column in (partitions, first, last, counts)), strict=True):
        times = records.timestamp_ms
        spans[partition].add(first_ms=int(times[a]), last_ms=int(times[b]), records=n)
    for partition, n in Counter(quarantined).items():
        spans[partition].quarantined += n


def _commit_key(key: bytes) -> CommitKey | Quarantined | None:
    if len(key) > KEPT_KEY_BYTES:
        return decode_commit_key(key) if is_offset_commit(key) else None
    return _kept_commit_key(key)


@lru_cache(maxsize=KEPT_KEYS)
def _kept_commit_key(key: bytes) -> CommitKey | Quarantined | None:
    return decode_commit_key(key) if is_offset_commit(key) else None


def _kind(key: CommitKey | Quarantined | None) -> int:
    if key is None:
        return _OTHER
    return _BAD_COMMIT if isinstance(key, Quarantined) else _COMMIT


def _commits(
    records: Records, chosen: NDArray[np.bool_], codes: NDArray[np.int32]
) -> tuple[Commits, list[tuple[int, Quarantined]]]:
    """Return the readable ones of the chosen commits as columns, and the reason for each unreadable one."""
    at = np.flatnonzero(chosen)
    decoded = decode_commit_values(FlatBytes.of(records.value).chosen(at))
    good = decoded.error == 0
    refused = [(int(at[i]), decoded.quarantined(i)) for i in np.flatnonzero(~good).tolist()]
    at = at[good]
    commits = Commits(
        position=at,
        log_epoch=records.log_epoch[at],
        source_partition=records.partition[at],
        offset=records.offset[at],
        timestamp_ms=records.timestamp_ms[at],
        key=codes[at],
        is_tombstone=decoded.is_tombstone[good],
        committed_offset=decoded.committed_offset[good],
        leader_epoch=decoded.leader_epoch[good],
        topic_id=decoded.topic_id[good],
        metadata_at=decoded.metadata_at[good],
        metadata_size=decoded.metadata_size[good],
    )
    return commits, refused


def _quarantine(records: Records, at: int, cluster: str, why: Quarantined) -> Row:
    return records.row(at, cluster) | {"source": OFFSETS_TOPIC, "reason": str(why.reason), "detail": why.detail}
