"""The printed result of a fuzzer: outcomes with their shares, crashes, time and memory."""

from __future__ import annotations

from collections import Counter

from testing.fuzzing.findings import Findings


def report(name: str, found: Findings, *, together: int = 1) -> None:
    """Print the outcomes, crashes, time and memory of a run that read `together` inputs at a time."""
    table(f"{found.counts.total():,} {name}", found.counts)
    slowest = f"slowest {f'{together} together ' if together > 1 else ''}{found.slowest_s:.3f} s"
    print(f"  {len(found.crashes)} crashed, {slowest}, {found.seconds:.0f} s, {found.extra_mb:.0f} MB more at the peak")
    print(*found.crashes[:5], sep="\n")


def table(title: str, counts: Counter[str]) -> None:
    """Print the counts and their shares."""
    print(title)
    for what, count in counts.most_common():
        print(f"  {count:>9,} {count / max(1, counts.total()):7.2%}  {what}")
