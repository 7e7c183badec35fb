"""Rows of `group_health`: the health of one group by hour, from its silver rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest

from pipelines.gold.churn import Resource, is_lost
from pipelines.gold.memberships import CAME, GONE, Silver, number, tracked
from schemas.folded_rows import count_of
from schemas.loss_interval import Loss, loss
from schemas.rows import GenerationRow, GroupHealthOfGroup, StallRow
from schemas.states import StallCause
from schemas.thresholds import HOUR_MS, LOOP

Span = tuple[int, int]


def health_rows(silver: Silver, until_ms: int) -> list[GroupHealthOfGroup]:
    """Return a row for every hour in which the group rebalanced, lost resource-time, or saw a member join or leave.

    `until_ms` is the end of the cluster's history; no owned time is counted after it. Spans over several hours are
    split at the hour, so that the hours add up to the total.
    """
    generations = sorted(silver["generations"], key=number)
    unstable = merged(_unstable(generations))
    changes = _changes(silver)
    stalls = [s for s in silver["stalls"] if is_lost(s) or s["cause"] == StallCause.NO_MEMBER]
    spans = [*unstable, *((at, at) for _, at, _ in changes), *(e for s in stalls if (e := _most(s)))]
    hours = sorted({hour for a, b in spans for hour in range(a // HOUR_MS, b // HOUR_MS + 1)})
    lost = [s for s in stalls if is_lost(s)]
    idle = [s for s in stalls if not is_lost(s)]
    owned = _owned(generations, silver, lost, until_ms)
    least = _by_hour(filter(None, map(_least, lost)))
    estimate = _by_hour(filter(None, map(_estimate, lost)))
    most = _by_hour(filter(None, map(_most, lost)))
    intervals = _intervals(lost)
    nobody_there = _by_hour(filter(None, map(_estimate, idle)))
    unstable_ms = _by_hour(unstable)
    completed_in: dict[int, list[GenerationRow]] = defaultdict(list)
    for g in generations:
        completed_in[(g["completed_at"] or -1) // HOUR_MS].append(g)
    gone_in: dict[int, list[int]] = defaultdict(list)
    for who, at, is_gone in changes:
        if is_gone:
            gone_in[at // HOUR_MS].append(who)
    out: list[GroupHealthOfGroup] = []
    for hour in hours:
        completed = completed_in[hour]
        lengths = sorted(g["rebalance_ms"] for g in completed if g["rebalance_ms"] is not None)
        seconds = owned[hour] / 1000
        _, low, high = intervals[hour]
        out.append(
            {
                "hour_at": hour * HOUR_MS,
                "rebalances": count_of(completed),
                "lost_resource_seconds_min": least[hour] / 1000,
                "lost_resource_seconds": estimate[hour] / 1000,
                "lost_resource_seconds_max": most[hour] / 1000,
                "idle_resource_seconds": nobody_there[hour] / 1000,
                "owned_resource_seconds": seconds,
                "availability": max(0.0, 1 - estimate[hour] / 1000 / seconds) if seconds else None,
                "unstable_ms": unstable_ms[hour] + sum(map(_folded_ms, completed)),
                "rebalance_ms_p50": _quantile(lengths, 0.5),
                "rebalance_ms_p95": _quantile(lengths, 0.95),
                "rebalance_ms_max": lengths[-1] if lengths else None,
                "lost_resource_seconds_low": low / 1000,
                "lost_resource_seconds_high": high / 1000,
                "flapping_members": _flapping(gone_in[hour]),
            }
        )
    return out


def _intervals(lost: Sequence[StallRow]) -> Mapping[int, Loss]:
    """Return the loss in milliseconds by hour, with its 90 % interval."""
    parts: dict[int, list[tuple[Hashable, float, float, float]]] = defaultdict(list)
    for stall in lost:
        key = (stall["incarnation"], stall["generation_id"], stall["from_member_id"])
        spans = [span for span in (_least(stall), _estimate(stall), _most(stall)) if span is not None]
        timestamps = [at for span in spans for at in span]
        for hour in range(min(timestamps) // HOUR_MS, max(timestamps) // HOUR_MS + 1):
            least, estimate, most = (_within(span, hour) for span in spans)
            parts[hour].append((key, min(least, estimate), estimate, max(most, estimate)))
    return defaultdict(lambda: (0.0, 0.0, 0.0), {hour: loss(stops) for hour, stops in parts.items()})


def _quantile(values: Sequence[int], share: float) -> int | None:
    """Return the smallest value that at least `share` of the sorted values do not exceed, None if there are none."""
    return values[max(0, -int(-share * len(values) // 1) - 1)] if values else None


def _unstable(generations: Sequence[GenerationRow]) -> Iterator[Span]:
    for g, following in zip_longest(generations, generations[1:]):
        start = g["prepared_at"] if g["prepared_at"] is not None else g["prepared_at_latest"]
        end = g["completed_at"]
        if end is None:
            end = g["joined_at"] if following is None else following["joined_at"]
        yield (min(g["joined_at"] if start is None else start, end), end)


def _folded_ms(g: GenerationRow) -> int:
    """Return the milliseconds of a row's rebalances without the first one, whose span is known."""
    if (together := g.get("unstable_ms")) is None:
        return 0
    ((start, end),) = _unstable([g])
    return together - (end - start)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, with overlapping and adjacent spans merged."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def _owned(
    generations: Sequence[GenerationRow], silver: Silver, lost: Sequence[StallRow], until_ms: int
) -> Mapping[int, int]:
    """Return owned resource-milliseconds by hour: from each generation's assignment to the next one, plus losses."""
    handed: dict[tuple[int, int], set[Resource]] = defaultdict(set)
    for row in silver["generation_members"]:
        handed[number(row)] |= {(r["name"], r["index"]) for r in row["assigned"] or ()}
    starts = [(_running(g), handed[number(g)]) for g in generations]
    away: dict[Resource, list[Span]] = defaultdict(list)
    for stall in lost:
        if (span := _estimate(stall)) is not None:
            away[stall["name"], stall["index"]].append(span)
    spans: dict[Resource, list[Span]] = defaultdict(list, {r: list(found) for r, found in away.items()})
    last = (max(until_ms, starts[-1][0]), set[Resource]()) if starts else (until_ms, set[Resource]())
    for (start, resources), (end, _) in pairwise([*starts, last]):
        for resource in resources:
            spans[resource].append((start, end))
    return _by_hour(span for found in spans.values() for span in merged(found))


def _running(g: GenerationRow) -> int:
    at = g["synced_at"] if g["synced_at"] is not None else g["joined_at"]
    return int(at)


def _changes(silver: Silver) -> list[tuple[int, int, bool]]:
    """Return (instance, time, whether it left) for every join and departure."""
    of_member = {one.member_id: i.number for i in tracked(silver) for one in i.memberships}
    return sorted(
        (of_member[e["member_id"]], e["event_at"], e["kind"] in GONE)
        for e in silver["group_events"]
        if e["kind"] in (*CAME, *GONE) and e["member_id"] in of_member
    )


def _flapping(departures: Sequence[int]) -> int:
    return sum(count >= LOOP for count in Counter(departures).values())


def _estimate(stall: StallRow) -> Span | None:
    return _span(stall["resumed_at_earliest"], stall["stopped_ms"])


def _least(stall: StallRow) -> Span | None:
    return _span(stall["resumed_at_earliest"], stall["stopped_ms_min"])


def _most(stall: StallRow) -> Span | None:
    return _span(stall["resumed_at_latest"], stall["stopped_ms_max"])


def _span(end: int | None, length: int | None) -> Span | None:
    return None if end is None or length is None else (end - length, end)


def _by_hour(spans: Iterable[Span]) -> Mapping[int, int]:
    out: dict[int, int] = defaultdict(int)
    for span in spans:
        for hour in range(span[0] // HOUR_MS, span[1] // HOUR_MS + 1):
            out[hour] += _within(span, hour)
    return out


def _within(span: Span, hour: int) -> int:
    return max(0, min(span[1], (hour + 1) * HOUR_MS) - max(span[0], hour * HOUR_MS))
