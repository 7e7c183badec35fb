"""How old the newest record may be before a state counts as not observed."""

from __future__ import annotations

STALE_MS = 60_000
"""Age at which the newest record is shown as stale: either nothing was written, or nothing was read."""


def is_stale(until: int, now: int) -> bool:
    """Return whether nothing is known of the time since `until`, the newest record; both in milliseconds."""
    return now - until > STALE_MS
