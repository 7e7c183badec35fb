"""The causes of a storm: each of its rebalances has the cause from its group's diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.gold.storms.storms import Storm
from schemas.states import NORMAL_CAUSES, DiagnosisCause, StormScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """The cause of one of a storm's unexplained rebalances."""

    group_id: str
    cause: DiagnosisCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The number of a storm's rebalances that have one cause, and the number of their groups."""

    cause: DiagnosisCause
    rebalances: int
    groups: int


def spread(voices: Sequence[Voice]) -> list[Spread]:
    """Return every cause with its numbers, the most frequent first."""
    rebalances = Counter(voice.cause for voice in voices)
    groups = Counter(cause for _, cause in {(voice.group_id, voice.cause) for voice in voices})
    ordered = sorted(rebalances, key=lambda cause: (-rebalances[cause], cause))
    return [Spread(cause=cause, rebalances=rebalances[cause], groups=groups[cause]) for cause in ordered]


def suspected(storm: Storm, voices: Sequence[Voice]) -> tuple[DiagnosisCause | None, float]:
    """Return the most frequent cause and its share (0 to 1), or None and 0 if no rebalance has a diagnosis.

    In a fleet storm each group counts once, with its first cause. A cause that is normal in healthy groups is suspected
    only if there is no other cause.
    """
    counted = voices
    if storm.scope == StormScope.FLEET:
        first: dict[str, Voice] = {}
        for voice in voices:
            first.setdefault(voice.group_id, voice)
        counted = list(first.values())
    counts = Counter(voice.cause for voice in counted)
    if not counts:
        return None, 0.0
    cause = min(counts, key=lambda c: (c in NORMAL_CAUSES, -counts[c], c))
    return cause, counts[cause] / len(counted)
