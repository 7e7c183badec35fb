"""Rows of one group prepared for drawing over time: states, member lifetimes, owners. Pure; times are epoch ms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from dashboards.lake.lake import Row
from dashboards.text import member_label
from dashboards.urlstate import Window
from dashboards.views.theme import style_of
from schemas.folded_rows import count_of
from schemas.states import Evidence, GroupEventKind, GroupState, RebalanceMode, StallCause

PARTIAL_MODES = (RebalanceMode.COOPERATIVE, RebalanceMode.INCREMENTAL)
DEPARTURES = (GroupEventKind.LEFT, GroupEventKind.SESSION_EXPIRED, GroupEventKind.POLL_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A span in one lane. It begins within [earliest, start] and ends within [end, latest]; equal if exactly known.

    `kind` is a style or an owner's label; `proof` is a text for the tooltip.
    """

    earliest: int
    start: int
    end: int
    latest: int
    kind: str
    evidence: str
    generation: int | None = None
    incarnation: int = 0
    proof: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _StyleChange:
    """A change of the group's style to `style`."""

    style: str
    earliest: int
    at: int
    evidence: str = Evidence.OBSERVED
    generation: Row | None = None


def states(
    generations: Sequence[Row], group: Row | None, events: Iterable[Row], window: Window, observed_until: int
) -> list[Segment]:
    """Return the group's state over the window without gaps; a time that no record covers is `unknown`."""
    changes: list[_StyleChange] = []
    for generation in sorted(generations, key=lambda g: g["joined_at"]):
        changes += _of_generation(generation)
    changes += [
        _StyleChange(style="gone", earliest=e["event_at"], at=e["event_at"]) for e in events if e["kind"] == "dead"
    ]
    changes.sort(key=lambda c: c.at)
    # The generation before the window is in force at its start.
    first = min((window.start, *(c.earliest for c in changes[:1])))
    changes.insert(0, _StyleChange(style="unknown", earliest=first, at=first, evidence=Evidence.INFERRED))
    changes += _now(group, changes[-1])
    until = max(observed_until, changes[-1].at)
    changes.append(_StyleChange(style="unknown", earliest=until, at=until, evidence=Evidence.INFERRED))
    ends = [*changes[1:], _StyleChange(style="", earliest=window.end, at=max(window.end, until))]
    return [
        segment
        for change, following in zip(changes, ends, strict=True)
        if change.style != "gone" and (segment := _clipped(_between(change, following), window))
    ]


def _of_generation(g: Row) -> list[_StyleChange]:
    partial = g["rebalance_mode"] in PARTIAL_MODES
    latest = min(g["prepared_at_latest"], g["joined_at"])
    earliest = min(g["prepared_at_earliest"], latest)
    if g["prepared_at"] is not None:
        earliest = latest = g["prepared_at"]
    found = [
        _StyleChange(
            style="partial" if partial else "stopped",
            earliest=earliest,
            at=latest,
            evidence=g["evidence"],
            generation=g,
        )
    ]
    if g["is_empty"]:
        return [*found, _StyleChange(style="empty", earliest=g["joined_at"], at=g["joined_at"], generation=g)]
    working = style_of(GroupState.STABLE, g["group_protocol"])
    if count_of([g]) > 1:
        return [*found, _StyleChange(style=working, earliest=ended(g), at=ended(g), generation=g)]
    recorded = [("assigning", g["joined_at"])]
    if g["synced_at"] is not None:
        recorded.append(("partial" if g["group_protocol"] != "classic" else working, g["synced_at"]))
    if g["completed_at"] is not None:
        recorded.append((working, g["completed_at"]))
    return found + [_StyleChange(style=style, earliest=at, at=at, generation=g) for style, at in recorded]


def _now(group: Row | None, last: _StyleChange) -> list[_StyleChange]:
    """Return the change to the group's last known state if it is newer than the last generation; else nothing."""
    if group is None or group["state"] in (GroupState.DEAD, GroupState.STABLE):
        return []
    since = group["open_rebalance_since_at"] or group["state_since_at"]
    if group["state"] == GroupState.UNKNOWN or since is None or since <= last.at:
        return []
    return [
        _StyleChange(
            style=style_of(group["state"], group["group_protocol"]),
            earliest=since,
            at=since,
            evidence=group["evidence"],
        )
    ]


def _between(change: _StyleChange, following: _StyleChange) -> Segment:
    end = max(change.at, following.earliest)
    g = change.generation
    return Segment(
        earliest=change.earliest,
        start=change.at,
        end=end,
        latest=end,
        kind=change.style,
        evidence=change.evidence,
        generation=g["generation_id"] if g else None,
        incarnation=g["incarnation"] if g else 0,
        proof=proof(g) if g else "",
    )


def ended(g: Row) -> int:
    """Return when the last generation in the row completed, or joined if it never did."""
    known = (g.get("last_completed_at"), g["completed_at"], g["joined_at"])
    return int(next(at for at in known if at is not None))


def proof(row: Row) -> str:
    """Return the offset of the record that proves a generation."""
    return f"__consumer_offsets-{row['source_partition']}@{row['source_offset']}"


def _clipped(segment: Segment, window: Window) -> Segment | None:
    def inside(at: int) -> int:
        return min(max(at, window.start), window.end)

    found = replace(
        segment,
        earliest=inside(segment.earliest),
        start=inside(segment.start),
        end=inside(segment.end),
        latest=inside(segment.latest),
    )
    return found if found.latest > found.earliest else None


def with_unread_spans(strip: Sequence[Segment], gaps: Iterable[Row], window: Window) -> list[Segment]:
    """Return the strip with every unread span as unknown, because a state drawn there would be a guess."""
    out = list(strip)
    for gap in gaps:
        start, end = max(gap["from_at"], window.start), min(gap["to_at"], window.end)
        kept = [
            piece
            for s in out
            for piece in (
                replace(s, end=min(s.end, start), latest=min(s.latest, start)),
                replace(s, earliest=max(s.earliest, end), start=max(s.start, end)),
            )
            if piece.earliest <= piece.start < piece.end <= piece.latest
        ]
        hole = Segment(
            earliest=start,
            start=start,
            end=end,
            latest=end,
            kind="unknown",
            evidence=Evidence.OBSERVED,
            proof=gap["gap_reason"] or "not read",
        )
        out = sorted([*kept, hole], key=lambda s: s.start)
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row of members: a static instance, or members of one client and host whose lifetimes never overlap."""

    label: str
    memberships: list[Segment]
    members: list[str]


def lanes(
    members: Sequence[Row],
    events: Sequence[Row],
    window: Window,
    observed_until: int,
    pinned: Sequence[str] = (),
) -> list[Lane]:
    """Return the lanes of the members, those with `pinned` labels first, then in order of arrival."""
    memberships = sorted(
        _memberships(members, events, window, observed_until),
        key=lambda membership: (membership[0].start, membership[1]),
    )
    placed: dict[tuple[str, ...], list[list[tuple[Segment, str, Row]]]] = defaultdict(list)
    for membership, member_id, row in memberships:
        instance = row["group_instance_id"]
        key = ("static", instance) if instance else (row["client_id"] or "", row["client_host"] or "")
        free = next((lane for lane in placed[key] if instance or lane[-1][0].latest <= membership.earliest), None)
        if free is None:
            placed[key].append(free := [])
        free.append((membership, member_id, row))
    found = [
        Lane(label=_lane_label(lane), memberships=[s for s, _, _ in lane], members=[m for _, m, _ in lane])
        for group in placed.values()
        for lane in group
    ]
    return sorted(found, key=lambda lane: (lane.label not in pinned, lane.memberships[0].start, lane.label))


def _lane_label(lane: Sequence[tuple[Segment, str, Row]]) -> str:
    _, member_id, row = lane[-1]
    if len(lane) == 1 or row["group_instance_id"]:
        return member_label(member_id, row["group_instance_id"], row["client_id"])
    return f"{row['client_id']} x{len(lane)}"


def _memberships(
    members: Sequence[Row], events: Sequence[Row], window: Window, observed_until: int
) -> Iterable[tuple[Segment, str, Row]]:
    rows: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in members:
        rows[row["incarnation"], row["member_id"]].append(row)
    in_order = sorted(events, key=lambda e: e["event_at"])
    came = {e["member_id"]: e for e in reversed(in_order) if e["kind"] == GroupEventKind.JOINED}
    departures = {e["member_id"]: e for e in in_order if e["kind"] in DEPARTURES}
    for (incarnation, member_id), spans in rows.items():
        spans.sort(key=lambda r: r["valid_from_at"])
        first, last = spans[0], spans[-1]
        arrival, departure = came.get(member_id), departures.get(member_id)
        if departure and departure["event_at"] < last["valid_from_at"]:
            departure = None
        start = arrival["event_at"] if arrival else first["valid_from_at"]
        end = last["valid_to_at"] if last["valid_to_at"] is not None else max(observed_until, start)
        grade = departure["evidence"] if departure else Evidence.OBSERVED
        if departure and grade == Evidence.OBSERVED:
            end = departure["event_at"]
        earliest = start
        if arrival and arrival["evidence"] != Evidence.OBSERVED:
            earliest = min(start, first["rejoined_at_earliest"] or start)
            grade = grade if grade == Evidence.INFERRED else arrival["evidence"]
        # The member left between the completion of its last generation and the end of the last join phase.
        since = last["valid_from_at"] if grade == Evidence.INFERRED and departure else end
        membership = Segment(
            earliest=min(earliest, start), start=start, end=max(start, min(since, end)), latest=max(start, end),
            kind="life", evidence=grade, generation=first["generation_id"], incarnation=incarnation,
        )  # fmt: skip
        if (clipped := _clipped(membership, window)) is not None:
            yield clipped, member_id, last


def delays(members: Sequence[Row]) -> list[Segment]:
    """Return the spans in which a Connect leader delays the assignment of lost or revoked work (KIP-415).

    A span begins with an assignment that has a delay. It ends after the delay, or earlier with the next assignment.
    """
    recorded: dict[tuple[int, int], tuple[int, int]] = {}
    for row in members:
        key = row["incarnation"], row["generation_id"]
        start, delay = recorded.get(key, (row["valid_from_at"], 0))
        recorded[key] = min(start, row["valid_from_at"]), max(delay, row["connect_delay_ms"] or 0)
    out: list[Segment] = []
    order = sorted((start, delay, key) for key, (start, delay) in recorded.items())
    for (start, delay, (incarnation, generation)), following in zip_longest(order, order[1:]):
        end = start + delay if following is None else min(start + delay, max(start, following[0]))
        if delay and end > start:
            out.append(
                Segment(earliest=start, start=start, end=end, latest=end, kind="delay", evidence=Evidence.OBSERVED,
                        generation=generation, incarnation=incarnation, proof=str(start + delay))
            )  # fmt: skip
    return out


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
            clipped
            for run in _handed_over(_runs(sorted(times, key=lambda t: t[0]), observed_until), cut, labels, epochs)
            for piece in _cut(run, cut)
            if (clipped := _clipped(piece, window))
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
