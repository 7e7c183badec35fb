"""The properties of tables whose batches follow each other without a pause."""

from __future__ import annotations


def kept_for(interval: str) -> dict[str, str]:
    """Return the properties of a table that keeps its log, and the names of its replaced files, for this interval."""
    return dict.fromkeys(("delta.logRetentionDuration", "delta.deletedFileRetentionDuration"), interval)
