"""When too much of what Kafka delivers cannot be read: a broken decoder, or a topic that is something else.

Without a stop all of it would end up in `quarantine`, and what it means would be missing everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jobs.config.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pipelines.bronze_batch import Records

IN_A_ROW = 1_000
SHARE = 0.05
LEAST = 1_000
"""Before so many records of a partition were read, their share says nothing."""
REMEMBERED = 10_000
"""So many records the past weighs beside what comes next."""


@dataclass(slots=True)
class QuarantineLimit:
    """What of a topic's partitions could be read since the start of a stream, batch by batch."""

    cluster: str
    topic: str
    _read: dict[int, tuple[float, float]] = field(default_factory=dict)

    def hold(self, batch: Iterable[tuple[int, int, int]]) -> None:
        """Take in (partition, records, of which quarantined) of a batch that is not written yet.

        Raises:
            UserError: of a partition's latest records more than `SHARE` could not be read.
        """
        for partition, records, quarantined in batch:
            known, bad = self._read.get(partition, (0.0, 0.0))
            known, bad = known + records, bad + quarantined
            if known >= LEAST and bad > SHARE * known:
                raise limit_reached(self.cluster, self.topic, partition, f"{bad / known:.0%} of the records")
            aged = min(1.0, REMEMBERED / max(known, 1.0))
            self._read[partition] = known * aged, bad * aged


def limit_reached(cluster: str, topic: str, partition: int, what: str) -> UserError:
    """The sentence that ends a stream."""
    return UserError(
        f"Reading stopped before more was written: {what} in {topic}-{partition} on {cluster} cannot be decoded. A "
        "newer Regroup may do so; else check that this is the right topic, or put quarantine_fuse = false into "
        f"[clusters.{cluster}] to go on and keep them in quarantine."
    )


@dataclass(slots=True)
class ConsecutiveLimit:
    """The records of each partition that could not be read, one after the other, within one task."""

    cluster: str
    topic: str
    _bad: dict[int, int] = field(default_factory=dict)

    def hold(self, records: Records, refused: pa.StructArray) -> None:
        """Take in records and the rows of `quarantine` that came of them.

        Raises:
            UserError: more than `IN_A_ROW` of a partition in a row could not be read.
        """
        if not len(refused) and not self._bad:
            return
        places = refused.field("source_partition").to_numpy(), refused.field("source_offset").to_numpy()
        for partition in np.unique(records.partition).tolist():
            is_bad = np.isin(records.offset[records.partition == partition], places[1][places[0] == partition])
            before = -1 - self._bad.get(partition, 0)
            edges = np.concatenate(([before], np.flatnonzero(~is_bad), [len(is_bad)]))
            if int(np.diff(edges).max()) - 1 > IN_A_ROW:
                raise limit_reached(self.cluster, self.topic, partition, f"more than {IN_A_ROW:,} records in a row")
            self._bad[partition] = int(edges[-1] - edges[-2]) - 1
