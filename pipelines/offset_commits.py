"""Offset commits combined into runs: the table `offset_commits`.

Consecutive commits of one (group, topic, partition) become one row, a run. It has the first, the last but one and the
last record. If the last record made no progress, the row also has the record before the last but one, because a client
that closes may repeat its last commit. A run ends:

- at every group record of the same group
- at every unreadable record of the same partition, which may be a group record or a commit
- at a tombstone
- when the topic's id changes, or the ten-minute bucket of the record time
- at the end of the call

So the last two commits before any group record and the first one after it are exact, whatever the length of the runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.arrow_types import row_type
from pipelines.decoding.commit_decoding import commit_metadata_of
from pipelines.decoding.commit_metadata import LONGEST, CommitMark, commit_mark
from pipelines.decoding.record_times import record_times
from pipelines.decoding.wire import uuid_text
from schemas.bronze import OFFSET_COMMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BUCKET_MS = 600_000
KEPT_MARKS = 10_000
"""Metadata whose mark a process remembers, of at most 4 KB each; members repeat theirs in every commit."""
CommitKey = tuple[str, str, int]
KEY = pa.struct([("group_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """Commits and their tombstones as columns, ascending by offset within each partition.

    `position` is the index of the record in the batch. `key` is an index into the distinct (group, topic, partition).
    For a tombstone, `committed_offset`, `leader_epoch` and `topic_id` are ignored. `topic_id` has 16 bytes; zero means
    no id. `metadata_at` and `metadata_size` are as in `CommitValues`.
    """

    position: NDArray[np.int64]
    log_epoch: NDArray[np.int32]
    source_partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    key: NDArray[np.int32]
    is_tombstone: NDArray[np.bool_]
    committed_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    topic_id: NDArray[np.void]
    metadata_at: NDArray[np.int32]
    metadata_size: NDArray[np.int32]

    def take(self, order: NDArray[np.int64]) -> Commits:
        return Commits(**{name: getattr(self, name)[order] for name in self.__slots__})


def runs(
    commits: Commits,
    keys: Sequence[CommitKey],
    group_records: Sequence[tuple[str, int]],
    unreadable: Sequence[tuple[int, int]],
    values: Sequence[bytes | None],
    cluster: str,
) -> pa.StructArray:
    """Return the rows of `offset_commits`.

    Args:
        commits: the commits of one batch.
        keys: the distinct (group, topic, partition) that `commits.key` refers to.
        group_records: (group, position) of every record that ends the runs of its group.
        unreadable: (partition of the offsets topic, position) of every record that ends all runs of its partition.
        values: the values of all records of the batch; `commits.position` refers to them.
        cluster: name of the cluster.
    """
    commits = commits.take(_stable_order(commits.key, len(keys)))
    starts = _starts(commits, _cuts_before(commits, keys, group_records), _cuts_in(commits, unreadable))
    lasts = np.append(starts[1:], len(commits.key))[: len(starts)] - 1
    single = lasts == starts
    before = np.where(single, lasts, lasts - 1)
    is_repeated = (lasts - starts > 1) & (commits.committed_offset[lasts] == commits.committed_offset[before])
    third, has_none = np.where(is_repeated, lasts - 2, lasts), ~is_repeated
    deleted = commits.is_tombstone[starts]
    library, committer = _committers(commits, lasts, values)
    named = pa.array(keys, KEY).take(pa.array(commits.key[starts]))
    columns = {
        "cluster": pa.repeat(pa.scalar(cluster, pa.string()), len(starts)),
        "log_epoch": commits.log_epoch[starts],
        "source_partition": commits.source_partition[starts],
        "first_offset": commits.offset[starts],
        "group_id": named.field("group_id"),
        "topic": named.field("topic"),
        "partition": named.field("partition"),
        "is_tombstone": deleted,
        "third_last_offset": pa.array(commits.offset[third], mask=has_none),
        "before_last_offset": pa.array(commits.offset[before], mask=single),
        "last_offset": commits.offset[lasts],
        "first_commit_at": record_times(commits.timestamp_ms[starts]),
        "third_last_commit_at": record_times(commits.timestamp_ms[third], has_none),
        "before_last_commit_at": record_times(commits.timestamp_ms[before], single),
        "last_commit_at": record_times(commits.timestamp_ms[lasts]),
        "first_committed_offset": pa.array(commits.committed_offset[starts], mask=deleted),
        "third_last_committed_offset": pa.array(commits.committed_offset[third], mask=has_none),
        "before_last_committed_offset": pa.array(commits.committed_offset[before], mask=single),
        "last_committed_offset": pa.array(commits.committed_offset[lasts], mask=deleted),
        "leader_epoch": pa.array(commits.leader_epoch[lasts], mask=deleted),
        "committer_library": library,
        "committer_id": committer,
        "topic_id": _uuids(commits.topic_id[starts]),
        "commits": lasts - starts + 1,
    }
    kind = row_type(OFFSET_COMMITS)
    arrays = [pa.array(columns[field.name], field.type) for field in kind]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _committers(
    commits: Commits, lasts: NDArray[np.int64], values: Sequence[bytes | None]
) -> tuple[list[str | None], list[str | None]]:
    """Return the library and the id that the metadata of the last record of each run names.

    Most commits have no metadata, and only the last of a run is read, so this costs little.
    """
    libraries: list[str | None] = [None] * len(lasts)
    ids: list[str | None] = [None] * len(lasts)
    for run in np.flatnonzero((commits.metadata_size[lasts] != 0) & ~commits.is_tombstone[lasts]).tolist():
        at = lasts[run]
        value = values[commits.position[at]]
        assert value is not None
        text = commit_metadata_of(value, int(commits.metadata_at[at]), int(commits.metadata_size[at]))
        mark = _mark(text) if len(text) <= LONGEST else CommitMark()
        libraries[run], ids[run] = next(iter(mark.libraries), None), mark.member_id or mark.process
    return libraries, ids


@lru_cache(KEPT_MARKS)
def _mark(metadata: str) -> CommitMark:
    """Return the mark of a text that is not empty; it names one library or none."""
    return commit_mark(metadata, None)


def _uuids(topic_id: NDArray[np.void]) -> pa.Array:
    """Return topic ids as text, with null for no id."""
    raw = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(topic_id), [None, pa.py_buffer(topic_id.tobytes())])
    encoded = raw.dictionary_encode()
    texts = [uuid_text(distinct) if any(distinct) else None for distinct in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _stable_order(codes: NDArray[np.int32], distinct: int) -> NDArray[np.int64]:
    # NumPy sorts 16-bit integers by radix, several times as fast as wider ones.
    narrow = codes.astype(np.uint16) if distinct <= np.iinfo(np.uint16).max else codes
    return np.argsort(narrow, kind="stable")


def _starts(commits: Commits, *cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indexes at which runs begin; the commits are ordered by key."""
    deleted = commits.is_tombstone
    changed = deleted[1:] | deleted[:-1]
    ids = commits.topic_id.view(np.int64).reshape(-1, 2).T
    for column in (commits.key, commits.log_epoch, commits.timestamp_ms // BUCKET_MS, *cuts, *ids):
        changed |= column[1:] != column[:-1]
    return np.flatnonzero(np.concatenate(([len(deleted) > 0], changed)))


def _cuts_before(
    commits: Commits, keys: Sequence[CommitKey], group_records: Sequence[tuple[str, int]]
) -> NDArray[np.int64]:
    """Return a number for each commit.

    It differs for two commits of a group that have a record of the group in between.
    """
    if not group_records:
        return np.zeros(len(commits.key), np.int64)
    codes: dict[str, int] = {}
    group_of_key = np.array([codes.setdefault(group, len(codes)) for group, _, _ in keys], np.int64)
    width = 1 + max(int(commits.position.max(initial=0)), *(position for _, position in group_records))
    cuts = np.array([codes[group] * width + at for group, at in group_records if group in codes], np.int64)
    return np.searchsorted(np.sort(cuts), group_of_key[commits.key] * width + commits.position)


def _cuts_in(commits: Commits, unreadable: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return a number for each commit.

    It differs for two commits of a partition with an unreadable record in between.
    """
    if not unreadable:
        return np.zeros(len(commits.key), np.int64)
    width = 1 + max(int(commits.position.max(initial=0)), *(position for _, position in unreadable))
    cuts = np.array(sorted(partition * width + at for partition, at in unreadable), np.int64)
    return np.searchsorted(cuts, commits.source_partition.astype(np.int64) * width + commits.position)
