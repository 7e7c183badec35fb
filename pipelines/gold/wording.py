"""Figures as a diagnosis says them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

NAMED = 3
LONGEST = 60
"""Client ids are strangers' text of any length."""


def spell(ms: float) -> str:
    """`340 ms`, `2.5 s`, `45 s`, `5 min`, `5 min 12 s`, `2 h 5 min`, `3 d 2 h`."""
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 10_000 and round(ms / 100) % 10:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    for size, word, part, rest in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= 2 * size or seconds >= size > 60:
            more = seconds % size // part
            return f"{seconds // size} {word} {more} {rest}" if more else f"{seconds // size} {word}"
    return f"{seconds} s"


def times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count:,} times"


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def who(names: Iterable[str]) -> str:
    """`orders-7 (6 times), orders-2 (once) and 4 others`, most often first."""
    counted = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{_cut(name)} ({times(count)})" for name, count in counted[:NAMED]]
    if len(counted) > NAMED:
        shown.append(many(len(counted) - NAMED, "other"))
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else "members that are not named"


def middle(values: Sequence[float]) -> str:
    """The median, spelled."""
    return spell(median(values))


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
