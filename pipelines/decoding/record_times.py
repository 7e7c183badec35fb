"""Kafka record timestamps as instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST_MS = 253_402_300_799_999
"""The end of year 9999, beyond which Spark and Python have no instants."""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(timestamp_ms: int | None) -> datetime | None:
    """None where the record has no timestamp (Kafka says -1) or where it is no possible instant."""
    if timestamp_ms is None or not 0 <= timestamp_ms <= LAST_MS:
        return None
    return EPOCH + timedelta(milliseconds=timestamp_ms)


def record_times(timestamps_ms: NDArray[np.int64], absent: NDArray[np.bool_] | None = None) -> pa.TimestampArray:
    """The same for a column; NULL also where `absent`."""
    impossible = (timestamps_ms < 0) | (timestamps_ms > LAST_MS)
    mask = impossible if absent is None else impossible | absent
    return pa.array(np.where(mask, 0, timestamps_ms) * 1000, pa.int64(), mask=mask).cast(pa.timestamp("us", tz="UTC"))
