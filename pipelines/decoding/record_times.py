"""Kafka record timestamps as Python and Arrow timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the latest timestamp of Spark and Python, in milliseconds."""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_datetime(timestamp_ms: int | None) -> datetime | None:
    """Return the timestamp in UTC, or None if the record has none (Kafka stores -1) or it is out of range."""
    if timestamp_ms is None or not 0 <= timestamp_ms <= LAST_MS:
        return None
    return EPOCH + timedelta(milliseconds=timestamp_ms)


def record_times(timestamps_ms: NDArray[np.int64], absent: NDArray[np.bool_] | None = None) -> pa.TimestampArray:
    """Return a column of timestamps, with NULL for invalid ones and for those in the mask `absent`."""
    impossible = (timestamps_ms < 0) | (timestamps_ms > LAST_MS)
    mask = impossible if absent is None else impossible | absent
    return pa.array(np.where(mask, 0, timestamps_ms) * 1000, pa.int64(), mask=mask).cast(pa.timestamp("us", tz="UTC"))
