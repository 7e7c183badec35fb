"""How many resources of one group were running, over time."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dashboards.lake.lake import Row
from dashboards.urlstate import Window
from dashboards.views.timelines.owners import Owned
from schemas.states import Evidence, StallCause

PARTS = 600
"""Steps that are together shorter than this part of the window become one. It is a pixel or two."""
RUNS, MAY_STOP, STOPPED, INFERRED = range(4)
"""The states of a resource: it certainly has an owner, may have none, or certainly has none; and whether that is
inferred."""

Changes = dict[int, Counter[int]]
"""By time: the change in the number of resources in each state from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The lowest number of running resources from `start` to `end` (ms) is `least` to `most`, of `total` assigned."""

    start: int
    end: int
    least: int
    most: int
    total: int
    is_inferred: bool

    @property
    def evidence(self) -> Evidence:
        if self.is_inferred:
            return Evidence.INFERRED
        return Evidence.OBSERVED if self.least == self.most else Evidence.BOUNDED


def running(
    owned: Iterable[Owned],
    stalls: Iterable[Row],
    window: Window,
    observed_until: int,
    *,
    unread: Iterable[tuple[int, int]] = (),
    open_since: int | None = None,
) -> list[Running]:
    """Return the running resources over the window, in order, where the group had members and was read.

    A resource between two owners, or whose owner was absent, does not run; the stalls say when that was. `unread`
    holds spans without a statement. In a rebalance that is open since `open_since`, each resource may be stopped.
    """
    cut: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for stall in stalls:
        cut[stall["name"], stall["index"]].append(stall)
    changes: Changes = defaultdict(Counter)
    for each in owned:
        known = [(RUNS, span.start, span.end) for span in each.spans]
        if known and open_since is not None and known[-1][2] >= open_since:
            known.append((MAY_STOP, open_since, observed_until))
        _add(changes, known, cut.get((each.name, each.index), ()), window)
    later = (observed_until, max(observed_until, window.end))
    return _merged(_without(_steps(changes), [*unread, later]), window.width / PARTS)


def _add(changes: Changes, known: Sequence[tuple[int, int, int]], stalls: Iterable[Row], window: Window) -> None:
    """Add one resource with its known states (state, start, end). If states overlap, a stop takes precedence, then a
    possible stop.
    """
    edges: Changes = defaultdict(Counter)
    for state, start, end in [*known, *_stopped(stalls, window)]:
        if start < end:
            edges[start][state] += 1
            edges[end][state] -= 1
    inside: Counter[int] = Counter()
    before: int | None = None
    for at in sorted(edges):
        inside.update(edges[at])
        now = next((state for state in (STOPPED, MAY_STOP, RUNS) if inside[state]), None)
        if now != before:
            changes[at].update({state: sign for state, sign in ((before, -1), (now, 1)) if state is not None})
        changes[at][INFERRED] += edges[at][INFERRED]
        before = now


def _stopped(stalls: Iterable[Row], window: Window) -> Iterator[tuple[int, int, int]]:
    for stall in stalls:
        stop, stopped = stall["stopped_at_earliest"], stall["stopped_at_latest"]
        back, resumed = stall["resumed_at_earliest"], stall["resumed_at_latest"]
        if stall["cause"] == StallCause.NO_MEMBER:
            # While the group surely had no members, nothing is assigned.
            yield MAY_STOP, *_inside(stop, stopped, window)
            if back is not None:
                yield MAY_STOP, *_inside(back, resumed, window)
        else:
            yield MAY_STOP, *_inside(stop, resumed, window)
            yield STOPPED, *_inside(stopped, back, window)
        if stall["evidence"] == Evidence.INFERRED:
            yield INFERRED, *_inside(stop, resumed, window)


def _inside(start: int, end: int | None, window: Window) -> tuple[int, int]:
    return max(start, window.start), window.end if end is None else min(end, window.end)


def _steps(changes: Mapping[int, Counter[int]]) -> Iterator[Running]:
    number: Counter[int] = Counter()
    for at, following in pairwise(sorted(changes)):
        number.update(changes[at])
        total = number[RUNS] + number[MAY_STOP] + number[STOPPED]
        if total:
            yield Running(
                start=at,
                end=following,
                least=number[RUNS],
                most=number[RUNS] + number[MAY_STOP],
                total=total,
                is_inferred=number[INFERRED] > 0,
            )


def _without(steps: Iterable[Running], unread: Iterable[tuple[int, int]]) -> Iterator[Running]:
    """Yield the parts of the steps, which are in order, outside the unread spans."""
    later = deque(sorted(unread))
    for step in steps:
        start = step.start
        while later and later[0][0] < step.end:
            since, until = later[0]
            if start < since:
                yield replace(step, start=start, end=since)
            start = max(start, until)
            if until > step.end:
                break
            later.popleft()
        if start < step.end:
            yield replace(step, start=start)


def _merged(steps: Iterable[Running], fine: float) -> list[Running]:
    """Return the steps with equal neighbours as one, and those that are together shorter than `fine`."""
    out: list[Running] = []
    for step in steps:
        if not out or not _is_one(out[-1], step, fine):
            out.append(step)
            continue
        last = out[-1]
        out[-1] = Running(
            start=last.start,
            end=step.end,
            least=min(last.least, step.least),
            most=min(last.most, step.most),
            total=max(last.total, step.total),
            is_inferred=last.is_inferred or step.is_inferred,
        )
    return out


def _is_one(last: Running, step: Running, fine: float) -> bool:
    if last.end != step.start:
        return False
    return replace(last, start=step.start, end=step.end) == step or step.end - last.start < fine
