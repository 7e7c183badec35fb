"""The predicted cost of other values of Kafka Connect's scheduled.rebalance.max.delay.ms for a worker group.

Connectors and tasks lost with a worker wait for the whole delay, even if the worker returns sooner (KIP-415). If the
delay ends before the worker returns, other workers get them, and some move back on its return. Each move is a short
stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pipelines.gold.advice.config_snippets import connect_delay
from pipelines.gold.advice.options import Option
from pipelines.gold.advice.prediction import MODEL_ERROR, Prediction, Saving
from pipelines.gold.churn import Churn, is_lost, lost_ms
from pipelines.gold.memberships import Silver, number
from schemas.states import AdviceAction, StallCause, Trigger

DELAYS_MS = (5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 180_000, 300_000, 600_000)
SHORTEST_MS = 1_000
"""Shorter delays are pauses between revocations (since 3.4, KAFKA-12495), not a wait for a worker."""

MOVE_MS = 1_000
"""Assumed time to stop a task on one worker and start it on another, if the group shows no such move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """One departure: how long each lost connector or task stopped, and how long the worker was absent (None: until the
    end).
    """

    stopped_ms: tuple[int, ...]
    away_ms: int | None


def delay_options(silver: Silver, found: Churn) -> list[Option]:
    """Return the best shorter delay, and the best longer one if a worker returned after the current delay expired."""
    handed = [m["connect_delay_ms"] or 0 for m in silver["generation_members"]]
    delay = max(handed, default=0)
    waits = list(_waits(silver, found, delay))
    if delay < SHORTEST_MS or not waits:
        return []
    moves = [lost_ms(s) for s in silver["stalls"] if s["cause"] == StallCause.MOVED and is_lost(s)]
    move = round(median(moves)) if moves else MOVE_MS
    late = any(w.away_ms is not None and w.away_ms > delay for w in waits)
    out = []
    for action, wanted in (
        (AdviceAction.LOWER_CONNECT_DELAY, [d for d in DELAYS_MS if d < delay]),
        (AdviceAction.RAISE_CONNECT_DELAY, [d for d in DELAYS_MS if d > delay and late]),
    ):
        if wanted:
            costs = {d: _cost(found.lost_ms, waits, delay, d, move) for d in wanted}
            best = min(costs, key=lambda d: (costs[d], d))
            out.append(_option(action, best, costs[best], waits, delay, found))
    return out


def _waits(silver: Silver, found: Churn, delay: int) -> Iterator[_Wait]:
    before = 0
    for g in sorted(silver["generations"], key=number):
        since, before = before, g["joined_at"]
        if g["trigger"] not in (Trigger.MEMBER_LEFT, Trigger.SESSION_EXPIRED):
            continue
        delays = [m["connect_delay_ms"] or 0 for m in silver["generation_members"] if number(m) == number(g)]
        lost = tuple(
            lost_ms(s)
            for s in silver["stalls"]
            if (s["incarnation"], s["generation_id"]) == number(g) and is_lost(s) and lost_ms(s) >= delay
        )
        if max(delays, default=0) != delay or not lost:
            continue
        gone = [o for o in found.outages if since < o.gone_at <= g["joined_at"]]
        away = [o.back_at - o.gone_at for o in gone if o.back_at is not None]
        yield _Wait(stopped_ms=lost, away_ms=max(away, default=None))


def _cost(lost_ms: int, waits: list[_Wait], delay: int, other: int, move: int) -> int:
    total = lost_ms
    for wait in waits:
        total += len(wait.stopped_ms) * (other - delay)
        if wait.away_ms is not None:
            total += len(wait.stopped_ms) * move * ((wait.away_ms > other) - (wait.away_ms > delay))
    return max(0, total)


def _option(action: AdviceAction, best: int, cost: int, waits: list[_Wait], delay: int, found: Churn) -> Option:
    lost, saved = cost / 1000, (found.lost_ms - cost) / 1000
    error = MODEL_ERROR * abs(saved)
    stops = sum(len(w.stopped_ms) for w in waits)
    returned = sum(w.away_ms is not None and w.away_ms <= best for w in waits)
    why = (
        f"{len(waits)} times a worker was lost, and {stops} connectors and tasks waited for the whole delay of "
        f"{delay:,} ms. With a delay of {best:,} ms they would wait for that time; {returned} of the workers were back "
        "within it."
    )
    return Option(
        action=action,
        prediction=Prediction(
            lost=lost,
            low=max(0.0, lost - error),
            high=lost + error,
            rebalances=found.rebalances,
        ),
        saving=Saving(estimate=saved, low=saved - error, high=saved + error),
        settings=connect_delay(best),
        preconditions=(),
        why=why,
    )
