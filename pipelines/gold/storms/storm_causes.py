"""The causes of a storm: each of its rebalances has the cause from its group's diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipelines.gold.storms.storms import Storm
from schemas.states import NORMAL_CAUSES, DiagnosisCause, StormScope


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosedRebalance:
    """The cause of one of a storm's unexplained rebalances, or of those in one folded row."""

    group_id: str
    cause: DiagnosisCause
    rebalances: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The number of a storm's rebalances that have one cause, and the number of their groups."""

    cause: DiagnosisCause
    rebalances: int
    groups: int


def spread(diagnosed: Sequence[DiagnosedRebalance]) -> list[Spread]:
    """Return every cause with its numbers, the most frequent first."""
    rebalances = _counts(diagnosed)
    groups = Counter(cause for _, cause in {(each.group_id, each.cause) for each in diagnosed})
    ordered = sorted(rebalances, key=lambda cause: (-rebalances[cause], cause))
    return [Spread(cause=cause, rebalances=rebalances[cause], groups=groups[cause]) for cause in ordered]


def suspected(storm: Storm, diagnosed: Sequence[DiagnosedRebalance]) -> tuple[DiagnosisCause | None, float]:
    """Return the most frequent cause and its share (0 to 1), or None and 0 if no rebalance has a diagnosis.

    In a fleet storm each group counts once, with its first cause. A cause that is normal in healthy groups is suspected
    only if there is no other cause.
    """
    counted = diagnosed
    if storm.scope == StormScope.FLEET:
        first: dict[str, DiagnosedRebalance] = {}
        for each in diagnosed:
            first.setdefault(each.group_id, each)
        counted = [replace(each, rebalances=1) for each in first.values()]
    counts = _counts(counted)
    if not counts:
        return None, 0.0
    cause = min(counts, key=lambda c: (c in NORMAL_CAUSES, -counts[c], c))
    return cause, counts[cause] / counts.total()


def _counts(diagnosed: Iterable[DiagnosedRebalance]) -> Counter[DiagnosisCause]:
    """Return the number of rebalances by cause."""
    out: Counter[DiagnosisCause] = Counter()
    for each in diagnosed:
        out[each.cause] += each.rebalances
    return out
