"""Figures as a diagnosis says them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from schemas.written import count, duration

NAMED = 3
LONGEST = 60
"""Client ids are strangers' text of any length."""


def times(number: int) -> str:
    """Return `once`, `twice` or `4 times`."""
    return "once" if number == 1 else "twice" if number == 2 else f"{number:,} times"


def with_counts(names: Iterable[str]) -> str:
    """`orders-7 (6 times), orders-2 (once) and 4 others`, most often first."""
    counted = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{_cut(name)} ({times(often)})" for name, often in counted[:NAMED]]
    if len(counted) > NAMED:
        shown.append(count(len(counted) - NAMED, "other"))
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else "members that are not named"


def median_duration(values: Sequence[float]) -> str:
    """The median duration."""
    return duration(median(values))


def period(instants: Sequence[int]) -> float | None:
    """The median distance between them, where at least two distances agree to within a fifth of it."""
    gaps = [b - a for a, b in pairwise(sorted(instants))]
    if len(gaps) < 2:
        return None
    usual = median(gaps)
    near = sum(abs(gap - usual) <= usual / 5 for gap in gaps)
    return usual if usual > 0 and 2 * near > len(gaps) else None


def upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 16]}…{name[-15:]}"
