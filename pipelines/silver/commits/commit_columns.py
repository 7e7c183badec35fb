"""The commits of many groups from runs as Arrow columns, which takes less time than `CommitHistory` of rows."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.silver.history import ENDS, CommitHistory, Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Group = tuple[str, str]
NAMED = ("cluster", "group_id", "topic", "partition")
POSITIONED = ("log_epoch", "first_offset", "last_offset")
READ = (*NAMED, *POSITIONED, "is_tombstone", "topic_id", "committer_id")
"""Columns of `offset_commits` that are read, besides `ENDS`."""

point_of = partial(tuple.__new__, Point)
"""`Point(*values)` without a call of Python code."""


def commit_histories(runs: pa.Table) -> dict[Group, CommitHistory]:
    """Return the commits by cluster and group. `runs` are rows of `offset_commits`, with timestamps in milliseconds."""
    runs = runs.filter(pc.is_valid(runs["group_id"]))
    out = {group: CommitHistory(()) for group in _groups(runs)}
    runs = runs.filter(pc.invert(runs["is_tombstone"]))
    for group, resource, points in _points(runs):
        out[group].add_points(resource, points)
    for which, add in (("topic_id", CommitHistory.add_topic), ("committer_id", CommitHistory.add_committer)):
        for run in runs.filter(pc.is_valid(runs[which])).select(READ).to_pylist():
            add(out[run["cluster"], run["group_id"]], run)
    return out


def _groups(runs: pa.Table) -> list[Group]:
    owners = ["cluster", "group_id"]
    found = runs.select(owners).group_by(owners).aggregate([]).select(owners)
    return [(cluster, group) for cluster, group in zip(*found.to_pydict().values(), strict=True)]


def _points(runs: pa.Table) -> list[tuple[Group, tuple[str, int], list[Point]]]:
    """Return the points of each resource in order, without repetition."""
    if not runs.num_rows:
        return []
    owners = codes(runs, NAMED)
    epochs, firsts, lasts = (_whole(runs[name]) for name in POSITIONED)
    is_read, values = _ends(runs, firsts == lasts)
    order = np.lexsort((firsts, epochs, owners))
    chosen = is_read[order].ravel()
    owner, epoch = (np.repeat(column[order], len(ENDS))[chosen] for column in (owners, epochs))
    offset, at, committed = (column[order].ravel()[chosen] for column in values)
    keys = (owner, epoch, offset, at, committed)
    later = np.lexsort(keys[::-1])
    owner, epoch, offset, at, committed = (column[later] for column in keys)
    is_new = np.ones(len(owner), bool)
    is_new[1:] = np.any([column[1:] != column[:-1] for column in (owner, epoch, offset, at, committed)], axis=0)
    owner, epoch, offset, at, committed = (column[is_new] for column in (owner, epoch, offset, at, committed))
    positions = zip(epoch.tolist(), offset.tolist(), strict=True)
    points = list(map(point_of, zip(positions, at.tolist(), committed.tolist(), strict=True)))
    with_points, begins = np.unique(owner, return_index=True)
    known, examples = np.unique(owners, return_index=True)
    names = runs.select(NAMED).take(examples[np.searchsorted(known, with_points)]).to_pydict()
    spans = pairwise([*begins.tolist(), len(points)])
    return [
        ((cluster, group), (topic, partition), points[begin:end])
        for cluster, group, topic, partition, (begin, end) in zip(*names.values(), spans, strict=True)
    ]


def codes(rows: pa.Table, names: Sequence[str]) -> NDArray[np.int64]:
    """Return a number for each row, which is the same for rows with equal values in these columns."""
    code = np.zeros(rows.num_rows, np.int64)
    for name in names:
        encoded = pc.dictionary_encode(rows[name].combine_chunks(), null_encoding="encode")
        # Numbered anew after each column, so that the product stays small.
        _, code = np.unique(code * len(encoded.dictionary) + encoded.indices.to_numpy(), return_inverse=True)
    return code.astype(np.int64)


def _ends(runs: pa.Table, is_single: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Sequence[NDArray[np.int64]]]:
    """Return which of the four commits of each run are known, and their offsets, times and committed offsets."""
    known, parts = [], defaultdict(list)
    for number, names in enumerate(ENDS):
        is_known = ~_is_null(runs[names[0]]) & ~_is_null(runs[names[1]])
        # A run of one commit has one point. Short batches produce many such runs.
        known.append(is_known if number == 0 else is_known & ~is_single)
        for part, name in enumerate(names):
            parts[part].append(_whole(runs[name]))
    return np.column_stack(known), [np.column_stack(parts[part]) for part in range(len(ENDS[0]))]


def _is_null(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(pc.is_null(column).to_numpy())


def _whole(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(column, 0).cast(pa.int64()).to_numpy())
