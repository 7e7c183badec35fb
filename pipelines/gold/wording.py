"""Formats of numbers and names in a diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from schemas.written import count, duration

NAMED = 3
LONGEST = 60
"""Characters of a name. Client ids are untrusted text of any length."""


def times(number: int) -> str:
    """Return `once`, `twice` or `4 times`."""
    return "once" if number == 1 else "twice" if number == 2 else f"{number:,} times"


def with_counts(names: Iterable[str]) -> str:
    """Return `orders-7 (6 times), orders-2 (once) and 4 others`, most frequent first."""
    return _most_frequent(names, least=1)


def with_repeats(names: Iterable[str]) -> str:
    """Return `orders-7 (6 times), orders-2 and 4 others`, most frequent first."""
    return _most_frequent(names, least=2)


def _most_frequent(names: Iterable[str], least: int) -> str:
    """Return the most frequent names, with their counts from `least` on."""
    counted = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    shown = [
        f"{shortened(name)} ({times(often)})" if often >= least else shortened(name) for name, often in counted[:NAMED]
    ]
    return _and_others(shown, len(counted) - NAMED) or "unnamed members"


def first_names(names: Sequence[str]) -> str:
    """Return `orders-7, orders-2 and 3 others`, in this order; empty if there are no names."""
    return _and_others([shortened(name) for name in names[:NAMED]], len(names) - NAMED)


def _and_others(shown: Sequence[str], others: int) -> str:
    parts = [*shown, count(others, "other")] if others > 0 else shown
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def median_duration(values: Sequence[float]) -> str:
    """Return the median of durations (milliseconds), as text."""
    return duration(median(values))


def period(timestamps: Sequence[int]) -> float | None:
    """Return the median interval between timestamps, or None if they are not regular.

    They are regular if there are at least two intervals and more than half of them are within a fifth of the median.
    """
    gaps = [b - a for a, b in pairwise(sorted(timestamps))]
    if len(gaps) < 2:
        return None
    usual = median(gaps)
    near = sum(abs(gap - usual) <= usual / 5 for gap in gaps)
    return usual if usual > 0 and 2 * near > len(gaps) else None


def shortened(name: str) -> str:
    """Return a name of at most 60 characters, without its middle if it is longer."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 16]}…{name[-15:]}"
