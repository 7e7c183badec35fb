"""The states of one group over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dashboards.lake.lake import Row
from dashboards.queries.generation_times import ended
from dashboards.urlstate import Window
from dashboards.views.theme import style_of
from dashboards.views.timelines.segments import PARTIAL_MODES, Segment, clipped, proof
from schemas.folded_rows import count_of
from schemas.states import Evidence, GroupState


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
        if change.style != "gone" and (segment := clipped(_between(change, following), window))
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
