"""Removes commits between two records of a group that cannot affect silver.

Batches of a few seconds leave one run per commit, and a run costs Python ten times as much as its removal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.silver.commits.commit_columns import codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST = 3
"""Rows kept at the end of a segment. `history.CommitSegment` needs three commits, and each run has at least one."""

LOG = ("cluster", "group_id", "log_epoch")
RESOURCE = (*LOG, "topic", "partition", "topic_id")


def pruned_commits(runs: pa.Table, records: pa.Table) -> pa.Table:
    """Return the rows of `offset_commits` that can affect silver, in their order.

    For each topic partition, these are the first commit and the last ones between two records of the group. `records`
    are all rows of `coordinator_records` of the same groups and time.
    """
    runs = runs.filter(pc.invert(runs["is_tombstone"]))
    if not runs.num_rows:
        return runs
    resources, segments, firsts = codes(runs, RESOURCE), _segments(runs, records), runs["first_offset"].to_numpy()
    order = np.lexsort((firsts, segments, resources))
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.any([column[order][1:] != column[order][:-1] for column in (resources, segments)], axis=0)
    begins = np.flatnonzero(is_new)
    lengths = np.diff(begins, append=len(order))
    remaining = np.repeat(begins + lengths, lengths) - np.arange(len(order))
    return runs.take(np.sort(order[is_new | (remaining <= LAST)]))


def _segments(runs: pa.Table, records: pa.Table) -> NDArray[np.int64]:
    """Return a number for each run, which is the same for runs of a group's log after the same record."""
    owners = codes(pa.concat_tables([records.select(LOG), runs.select(LOG)]), LOG)
    offsets = np.concatenate([records["source_offset"].to_numpy(), runs["first_offset"].to_numpy()])
    is_record = np.arange(len(offsets)) < records.num_rows
    # A record comes before a run that begins at its offset.
    order = np.lexsort((~is_record, offsets, owners))
    numbers = np.empty(len(offsets), np.int64)
    numbers[order] = np.cumsum(is_record[order])
    return numbers[records.num_rows :]
