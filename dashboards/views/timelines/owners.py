"""The owners of each resource of one group over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dashboards.lake.lake import Row
from dashboards.text import member_label
from dashboards.urlstate import Window
from dashboards.views.timelines.segments import Segment, clipped
from schemas.states import Evidence, StallCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The owners of one resource over the window; the gaps between them are stalls."""

    name: str
    index: int
    spans: list[Segment]
    stopped_ms: int


def ownership(
    members: Sequence[Row],
    stalls: Sequence[Row],
    window: Window,
    observed_until: int,
    epochs: Collection[int] = (),
) -> list[Owned]:
    """Return the owners per resource, ordered by name and index; a span's `kind` is the owner's label.

    In generations in `epochs` (KIP-848), an assignment is a target, and the stalls give the time of the hand-over.
    """
    labels = {m["member_id"]: member_label(m["member_id"], m["group_instance_id"], m["client_id"]) for m in members}
    owned: dict[tuple[str, int], list[tuple[int, int | None, str, Row]]] = defaultdict(list)
    for row in members:
        label = labels[row["member_id"]]
        for resource in row["assigned"] or ():
            owned[resource["name"], resource["index"]].append((row["valid_from_at"], row["valid_to_at"], label, row))
    gaps: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for stall in stalls:
        gaps[stall["name"], stall["index"]].append(stall)
    found = []
    for (name, index), times in sorted(owned.items()):
        cut = sorted(gaps[name, index], key=lambda s: s["stopped_at_latest"])
        spans = [
            part
            for run in _handed_over(_runs(sorted(times, key=lambda t: t[0]), observed_until), cut, labels, epochs)
            for piece in _cut(run, cut)
            if (part := clipped(piece, window))
        ]
        lost = sum(s["stopped_ms"] or 0 for s in cut if s["cause"] != StallCause.NO_MEMBER)
        found.append(Owned(name=name, index=index, spans=spans, stopped_ms=lost))
    return found


def _runs(times: Sequence[tuple[int, int | None, str, Row]], observed_until: int) -> list[Segment]:
    """Return one segment per uninterrupted owner, as if a hand-over took no time."""
    runs: list[Segment] = []
    for i, (since, until, label, row) in enumerate(times):
        following = times[i + 1][0] if i + 1 < len(times) else None
        end = following if following is not None else until if until is not None else max(observed_until, since)
        if runs and runs[-1].kind == label:
            runs[-1] = replace(runs[-1], end=end, latest=end)
            continue
        runs.append(
            Segment(
                earliest=since,
                start=since,
                end=end,
                latest=end,
                kind=label,
                evidence=Evidence.OBSERVED,
                generation=row["generation_id"],
                incarnation=row["incarnation"],
            )
        )
    return runs


def _handed_over(
    runs: list[Segment], gaps: Sequence[Row], labels: Mapping[str, str], epochs: Collection[int]
) -> list[Segment]:
    """Move the borders of `epochs` to the times in the stalls, because a target may be reached late or never."""
    steps = sorted((g for g in gaps if g["generation_id"] in epochs), key=lambda g: g["stopped_at_latest"])
    if not steps or not runs:
        return runs
    first, last = runs[0], runs[-1]
    out, start, kind = [], first.start, labels.get(steps[0]["from_member_id"], first.kind)
    for step in steps:
        back = step["resumed_at_latest"]
        border = min(last.latest, max(start, step["stopped_at_latest"] if back is None else back))
        out.append(replace(first, earliest=start, start=start, end=border, latest=border, kind=kind))
        start, kind = border, labels.get(step["to_member_id"] or "", "")
    if kind and start < last.latest:
        out.append(replace(last, earliest=start, start=start, kind=kind))
    return out


def _cut(run: Segment, gaps: Sequence[Row]) -> list[Segment]:
    """Return the run without its stalls: the end before a stall and the start after it have bounds."""
    pieces, rest = [], run
    for gap in gaps:
        stop, stopped = gap["stopped_at_earliest"], gap["stopped_at_latest"]
        back, resumed = gap["resumed_at_earliest"], gap["resumed_at_latest"]
        if stop >= rest.latest or (resumed is not None and resumed <= rest.earliest):
            continue
        if stop > rest.earliest:
            pieces.append(
                replace(rest, end=max(rest.start, stop), latest=min(max(stopped, rest.start), rest.latest),
                        evidence=gap["evidence"])
            )  # fmt: skip
        if back is None or back >= rest.latest:
            return pieces
        rest = replace(rest, earliest=max(back, rest.earliest), start=max(resumed, rest.start))
        rest = replace(rest, end=max(rest.start, rest.end), latest=max(rest.start, rest.latest))
    return [*pieces, rest]
