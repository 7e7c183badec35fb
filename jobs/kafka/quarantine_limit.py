"""Stops a stream if too many records cannot be decoded: the decoder is broken, or the topic is the wrong one.

Without this limit, all records would go to `quarantine`, and all other tables would lack their content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jobs.config.errors import UserError
from schemas.written import percent

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pipelines.bronze_batch import Records

IN_A_ROW = 1_000
SHARE = 0.05
LEAST = 1_000
"""Records of a partition that must be read before the quarantined share counts."""
REMEMBERED = 10_000
"""Weight of earlier records in the share, in records."""


@dataclass(slots=True)
class QuarantineLimit:
    """The share of quarantined records in each partition of a topic since the start of a stream."""

    cluster: str
    topic: str
    _read: dict[int, tuple[float, float]] = field(default_factory=dict)

    def check(self, batch: Iterable[tuple[int, int, int]]) -> None:
        """Add (partition, records, quarantined records) of a batch that is not written yet.

        Raises:
            UserError: more than `SHARE` of a partition's recent records cannot be decoded.
        """
        for partition, records, quarantined in batch:
            known, bad = self._read.get(partition, (0.0, 0.0))
            known, bad = known + records, bad + quarantined
            if known >= LEAST and bad > SHARE * known:
                raise limit_reached(self.cluster, self.topic, partition, f"{percent(bad / known)} of the records")
            aged = min(1.0, REMEMBERED / max(known, 1.0))
            self._read[partition] = known * aged, bad * aged


def limit_reached(cluster: str, topic: str, partition: int, records: str) -> UserError:
    """Return the error that ends a stream."""
    return UserError(
        f"Reading stopped before more was written: {records} in {topic}-{partition} on {cluster} cannot be decoded. A "
        "newer Regroup may decode them. Otherwise check that this is the right topic, or set quarantine_fuse = false "
        f"in [clusters.{cluster}] to continue and keep them in quarantine."
    )


@dataclass(slots=True)
class ConsecutiveLimit:
    """The current number of consecutive undecodable records in each partition, within one task."""

    cluster: str
    topic: str
    _bad: dict[int, int] = field(default_factory=dict)

    def check(self, records: Records, refused: pa.StructArray) -> None:
        """Add records and the rows of `quarantine` made from them.

        Raises:
            UserError: more than `IN_A_ROW` consecutive records of a partition cannot be decoded.
        """
        if not len(refused) and not self._bad:
            return
        positions = refused.field("source_partition").to_numpy(), refused.field("source_offset").to_numpy()
        for partition in np.unique(records.partition).tolist():
            is_bad = np.isin(records.offset[records.partition == partition], positions[1][positions[0] == partition])
            before = -1 - self._bad.get(partition, 0)
            edges = np.concatenate(([before], np.flatnonzero(~is_bad), [len(is_bad)]))
            if int(np.diff(edges).max()) - 1 > IN_A_ROW:
                raise limit_reached(self.cluster, self.topic, partition, f"more than {IN_A_ROW:,} records in a row")
            self._bad[partition] = int(edges[-1] - edges[-2]) - 1
