"""How a storm spreads over causes: each of its rebalances has the cause that its group's diagnosis gives it."""

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
    """How many of a storm's rebalances have a cause, and of how many groups these are."""

    cause: DiagnosisCause
    rebalances: int
    groups: int


def spread(voices: Sequence[Voice]) -> list[Spread]:
    """Return every cause, that of most rebalances first."""
    rebalances = Counter(voice.cause for voice in voices)
    groups = Counter(cause for _, cause in {(voice.group_id, voice.cause) for voice in voices})
    ordered = sorted(rebalances, key=lambda cause: (-rebalances[cause], cause))
    return [Spread(cause=cause, rebalances=rebalances[cause], groups=groups[cause]) for cause in ordered]


def suspected(storm: Storm, voices: Sequence[Voice]) -> tuple[DiagnosisCause | None, float]:
    """Return the cause of most rebalances, and its share; in a fleet storm each group has one voice: how it began. A
    cause that a healthy group has too is suspected only if there is no other. None: no rebalance has a diagnosis.
    """
    heard = voices
    if storm.scope == StormScope.FLEET:
        first: dict[str, Voice] = {}
        for voice in voices:
            first.setdefault(voice.group_id, voice)
        heard = list(first.values())
    counts = Counter(voice.cause for voice in heard)
    if not counts:
        return None, 0.0
    cause = min(counts, key=lambda c: (c in NORMAL_CAUSES, -counts[c], c))
    return cause, counts[cause] / len(heard)
