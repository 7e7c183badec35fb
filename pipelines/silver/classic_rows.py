"""The rows of one phase in which the group used the classic protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from pipelines.silver.carrying.ownership import Copied, copied, restore
from pipelines.silver.carrying.points import Border
from pipelines.silver.carrying.valid_points import after_ordered, block_of, border_positions, resume_points, shift_of
from pipelines.silver.commits.committers import by_commits
from pipelines.silver.generation_log import LogIndex
from pipelines.silver.generation_rows import generation_row, moved
from pipelines.silver.generations import Generation, GroupIncarnations, ResumeState, read_incarnations
from pipelines.silver.group_events import event_row, lifecycle, of_generation, static_returns
from pipelines.silver.groups import group_row
from pipelines.silver.history import Event, Resource
from pipelines.silver.member_rows import member_rows
from pipelines.silver.phases import Phase
from pipelines.silver.stalls import stalls
from pipelines.silver.stops.member_stops import GenerationContext, generation_contexts
from pipelines.silver.timeline import Timeline
from pipelines.silver.triggers import Cause, cause
from schemas.rows import GenerationOfGroup, GroupEventOfGroup
from schemas.states import Evidence, GroupEventKind, RebalanceMode, Trigger


def add_classic(timeline: Timeline, phase: Phase) -> None:
    """Add the phase's rows to the timeline.

    After a conversion, the first record repeats the epoch's number, and the history resumes from it.
    """
    converted = _converted(timeline, phase)
    base = converted or (None if timeline.has_begun else timeline.base)
    records = phase.records[:-1] if phase.is_handed_on else phase.records
    starts_anew = timeline.is_alive and base is None
    carried = timeline.carried if base is timeline.base else None
    waiting = carried.waiting if carried is not None else frozenset[Resource]()
    found = read_incarnations(records, base, timeline.incarnation + starts_anew, waiting)
    lines = LogIndex(phase.history.events)
    logs = [lines.log_of(g) for g in found.generations]
    unfinished = lines.unfinished(found.generations)
    contexts = generation_contexts(found.generations, logs, timeline.history.commits, timeline.workers)
    if converted is not None:
        timeline.ownership.keep(found.generations[0].members)
    owned = timeline.ownership
    owned.commits = timeline.history.commits
    if carried is not None and base is not None:
        restore(owned, carried.fields, base.incarnation)
    in_order = after_ordered(found.generations, phase.history.records)
    shift = shift_of(timeline.history.group_id)
    possible = border_positions(found.generations, in_order, lines, shift)
    states = stalls(contexts, owned, possible, copied, is_begun=carried is not None)
    timeline.bases = resume_points(found.generations, owned.stalls, owned.undecided, in_order)
    # Where the state of a task was still being restored, what follows depends on more than the state.
    states = {position: state for position, state in states.items() if position not in owned.restoring}
    timeline.generations = {g.position: g for g in found.generations}
    timeline.out["group_events"] += _lifecycle(phase, found, unfinished)
    for each, following in zip_longest(contexts, found.generations[1:]):
        g = each.generation
        if g.previous is None and (base is None or g.position != base.position):
            timeline.last_owner.clear()
            timeline.owned_at.clear()
        _note_owners(timeline, g, states.get(g.position), shift)
        if base is not None and g.position == base.position:
            if carried is not None:
                timeline.last_owner, timeline.owned_at = carried.last_owner, carried.owned_at
            else:
                moved(g, timeline.last_owner)
            timeline.out["group_events"] += static_returns(g)
            timeline.base_at = g.completed_at if base is timeline.base else timeline.base_at
            continue
        _of_generation(timeline, phase, each, following)
        if converted is not None and g.previous is not None and g.previous.position == converted.position:
            _after_conversion(timeline.out["generations"][-1], timeline.members, g)
    timeline.out["groups"] = group_row(timeline.history, found, timeline.base)
    _hand_on(timeline, found)


def _note_owners(timeline: Timeline, g: Generation, state: Copied | None, shift: int) -> None:
    """Add the state at a possible point before this generation, and note which resources it assigns."""
    if state is not None and g.previous is not None:
        before, block = (block_of(each, shift) for each in (g.previous, g))
        timeline.borders[g.position] = Border(
            following=g,
            before=g.previous,
            fields=state.fields,
            live=state.live,
            last_owner=dict(timeline.last_owner),
            owned_at=dict(timeline.owned_at),
            block=block,
            begins_block=block != before,
        )
    timeline.owned_at.update(dict.fromkeys(g.owners, g.position))


def _converted(timeline: Timeline, phase: Phase) -> ResumeState | None:
    """Return the state from which the history resumes after a conversion to the classic protocol.

    Return None without a conversion. Return None for an empty group too, because its number is not kept.
    """
    first = next((r for r in phase.records if r.value is not None), None)
    if not phase.is_taken_over or first is None or first.value is None or first.value["generation"] == 0:
        return None
    return ResumeState(
        position=first.position, incarnation=timeline.incarnation, mode=RebalanceMode.UNKNOWN, first_seen_at=None
    )


def _lifecycle(phase: Phase, found: GroupIncarnations, unfinished: list[Event]) -> Iterator[GroupEventOfGroup]:
    first = phase.records[0] if phase.records else None
    if phase.is_taken_over and first is not None and first.at is not None:
        found = replace(found, created=[(i, r) for i, r in found.created if r.position != first.position])
        incarnation = found.generations[0].incarnation if found.generations else found.incarnation
        number = first.value["generation"] if first.value else None
        yield event_row(first.at, GroupEventKind.DOWNGRADED, incarnation, evidence=Evidence.OBSERVED, generation=number)
    yield from lifecycle(found, phase.history.events, unfinished)


def _of_generation(timeline: Timeline, phase: Phase, context: GenerationContext, following: Generation | None) -> None:
    g, log, done = context.generation, context.log, context.done
    until = following.joined_at if following and following.incarnation == g.incarnation else None
    if following is None and phase.is_handed_on:
        until = phase.records[-1].at
    out = timeline.out
    out["generations"].append(generation_row(g, log, cause(g, log, done), done, moved(g, timeline.last_owner)))
    commits = timeline.history.commits
    by_commit = by_commits(g, following, commits) if commits.committers else {}
    out["generation_members"] += member_rows(g, log, done, until, by_commit)
    out["group_events"] += of_generation(g, log, done)


def _after_conversion(row: GenerationOfGroup, before: frozenset[str], g: Generation) -> None:
    """Set the trigger of the first generation after a conversion.

    The group was converted and rebalanced because the last member with the other protocol left.
    """
    row["joined_member_ids"] = sorted(g.members.keys() - before)
    row["left_member_ids"] = sorted(before - g.members.keys())
    if row["trigger_evidence"] != Evidence.OBSERVED:
        why = Cause(trigger=Trigger.DOWNGRADE, evidence=Evidence.INFERRED)
        row["trigger"], row["trigger_evidence"], row["trigger_member_id"] = why.trigger, why.evidence, why.member_id


def _hand_on(timeline: Timeline, found: GroupIncarnations) -> None:
    timeline.incarnation = found.incarnation
    last = found.generations[-1] if found.generations else None
    if last is not None and last.incarnation != found.incarnation:
        last = None
    is_new = any(incarnation == found.incarnation for incarnation, _ in found.created)
    timeline.is_alive = last is not None or is_new
    timeline.number = last.number if last is not None else (0 if is_new else None)
    timeline.members = frozenset(last.final_members) if last is not None else frozenset()
    timeline.has_begun = True
