"""Members and the owners of resources as tracks of a trace."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.answers.traces.bounds import NAME, between, bounded_slice, clipped_slice
from dashboards.answers.traces.trace_events import Slice, Track
from dashboards.lake.lake import Row
from dashboards.text import resource, visible
from dashboards.views.group_timeline import GroupTimeline
from dashboards.views.timelines.lanes import Lane
from dashboards.views.timelines.owners import Owned
from schemas.states import StallCause


def of_lane(lane: Lane) -> Track:
    """Return the members of a lane, one slice each."""
    return Track(
        name=visible(lane.label, NAME),
        slices=[
            bounded_slice(visible(member, NAME), (s.earliest, s.start), (s.end, s.latest), {"evidence": s.evidence})
            for member, s in zip(lane.members, lane.memberships, strict=True)
        ],
    )


def of_resources(timeline: GroupTimeline, known: dict[str, str]) -> Iterator[Track]:
    """Yield a track per resource: who owned it, and when it was stopped or had no member."""
    stops: dict[tuple[str, int], list[Slice]] = {}
    for stall in timeline.rows.stalls.rows:
        clipped = clipped_slice(_of_stall(stall, known, min(timeline.view.end, timeline.last)), timeline.view)
        if clipped is not None:
            stops.setdefault((stall["name"], stall["index"]), []).append(clipped)
    owners = {(owned.name, owned.index): _of_owner(owned) for owned in timeline.owned}
    for name, index in sorted(owners.keys() | stops.keys()):
        slices = [*owners.get((name, index), ()), *stops.get((name, index), ())]
        yield Track(name=resource(name, index, NAME), slices=slices)


def _of_owner(owned: Owned) -> list[Slice]:
    return [
        Slice(
            name=visible(span.kind, NAME),
            start=span.start,
            end=span.end,
            arguments={"since": between(span.earliest, span.start), "until": between(span.end, span.latest)}
            | {"evidence": span.evidence},
        )
        for span in owned.spans
        if span.end > span.start
    ]


def _of_stall(stall: Row, known: dict[str, str], until: int) -> Slice:
    stopped = stall["stopped_at_earliest"], stall["stopped_at_latest"]
    is_over = stall["resumed_at_earliest"] is not None
    resumed = (stall["resumed_at_earliest"], stall["resumed_at_latest"]) if is_over else (until, until)
    word = "no member" if stall["cause"] == StallCause.NO_MEMBER else "stopped"
    return bounded_slice(
        word if is_over else f"{word}, not resumed",
        stopped,
        resumed,
        {
            "cause": stall["cause"].replace("_", " "),
            "generation": str(stall["generation_id"]),
            "from": known.get(stall["from_member_id"], visible(stall["from_member_id"])),
            "to": known.get(stall["to_member_id"] or "", visible(stall["to_member_id"])),
            "evidence": stall["evidence"],
        },
    )


def stopped_counter(timeline: GroupTimeline) -> dict[str, list[tuple[int, int]]]:
    """Return the number of resources that were certainly stopped, at each time it changes; nothing without stops.

    It is a lower limit in every span, so also one that was not read.
    """
    view = timeline.view
    changes: dict[int, int] = {view.start: 0}
    for stall in timeline.rows.stalls.rows:
        back = stall["resumed_at_earliest"]
        first = max(view.start, stall["stopped_at_latest"])
        last = min(view.end, timeline.last if back is None else back)
        if stall["cause"] != StallCause.NO_MEMBER and first < last:
            changes[first] = changes.get(first, 0) + 1
            changes[last] = changes.get(last, 0) - 1
    if len(changes) == 1:
        return {}
    steps, number = [], 0
    for at in sorted(changes):
        number += changes[at]
        steps.append((at, number))
    return {f"{timeline.unit}s stopped, at least": steps}
