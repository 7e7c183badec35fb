"""A range of one group as a trace: its states, rebalances, events, members and the owners of its resources.

A slice covers the time in which something may have been so; its inner slice, if there is one, the time in which it
certainly was. Owners are drawn only where they are certain, because the stops around them have bounds. Every slice says
in its arguments how it is known. Times in arguments are UTC, whatever the zone of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dashboards.answers.traces.bounds import NAME, bounded_slice, clipped_slice
from dashboards.answers.traces.ownership_tracks import of_lane, of_resources, stopped_counter
from dashboards.answers.traces.trace_events import Instant, Slice, TraceSection, Track, trace_events
from dashboards.answers.written import at
from dashboards.lake.lake import Row
from dashboards.queries.generation_times import ended
from dashboards.text import host, member_label, visible
from dashboards.views import sentences
from dashboards.views.group_timeline import GroupTimeline
from dashboards.views.marks import flag_of, mark_subject
from dashboards.views.theme import GLYPHS, STYLES
from dashboards.views.timelines.segments import Segment, proof
from schemas.states import Evidence, GroupEventKind, GroupProtocol
from schemas.written import capitalized

SOURCE = "Regroup, from __consumer_offsets and the group coordinator's log"


def group_trace(timeline: GroupTimeline) -> dict[str, Any]:
    """Return the trace of a group's range as a JSON object of the Trace Event Format.

    `otherData` holds the group, the range and the notes that a reader of the trace must know.
    """
    known = sentences.names([*timeline.rows.members.rows, *timeline.rows.events.rows])
    group = visible(timeline.found["group_id"], NAME)
    sections = [
        TraceSection(name=f"Group {group}", tracks=list(_of_group(timeline, known))),
        TraceSection(name="Members", tracks=[of_lane(lane) for lane in timeline.lanes]),
        TraceSection(
            name=f"Owner of each {timeline.unit}",
            tracks=list(of_resources(timeline, known)),
            counters=stopped_counter(timeline),
        ),
    ]
    return {
        "traceEvents": trace_events(sections),
        "displayTimeUnit": "ms",
        "otherData": {
            "source": SOURCE,
            "cluster": timeline.found["cluster"],
            "group": timeline.found["group_id"],
            "from": at(timeline.view.start),
            "until": at(timeline.view.end),
            "newest record": at(timeline.last),
            **{f"note {number}": text for number, text in enumerate(_notes(timeline), start=1)},
        },
    }


def _notes(timeline: GroupTimeline) -> Iterator[str]:
    if timeline.is_capped:
        yield "Only the newest part of this range was read: choose a shorter one."
    if timeline.rows.gaps.rows:
        yield "Parts of this range were not read: the track States shows them as not observed."
    if timeline.view.end > timeline.last:
        yield f"Nothing is known after {at(timeline.last)}."
    if timeline.found["group_protocol"] == GroupProtocol.SHARE:
        yield "No record shows whether the members of a share group process: its stops are not known."


def _of_group(timeline: GroupTimeline, known: dict[str, str]) -> Iterator[Track]:
    yield Track(name="States", slices=[each for segment in timeline.strip for each in _of_state(segment)])
    generations = timeline.rows.generations.rows
    clipped = [clipped_slice(_of_generation(g, known), timeline.view) for g in generations]
    term = sentences.term(generations[0]) if generations else "generation"
    yield Track(name=f"{capitalized(term)}s", slices=[each for each in clipped if each is not None])
    if timeline.delays:
        yield Track(name="Assignment delayed (Connect)", slices=[_of_delay(each) for each in timeline.delays])
    yield Track(name="Events", instants=[_of_event(each) for each in timeline.rows.events.rows])
    if timeline.rows.marks:
        yield Track(name="Marks", instants=[_of_mark(each) for each in timeline.rows.marks])


def _of_state(segment: Segment) -> Iterator[Slice]:
    style = STYLES[segment.kind]
    arguments = {"meaning": style.meaning, "evidence": segment.evidence, "proof": segment.proof or "none"}
    if segment.generation is not None:
        arguments["generation"] = str(segment.generation)
    if segment.start > segment.earliest:
        yield Slice(
            name=f"{style.word} or as before",
            start=segment.earliest,
            end=segment.start,
            arguments={"meaning": f"the state “{style.word}” began within this span", "evidence": Evidence.BOUNDED},
        )
    yield Slice(name=style.word, start=segment.start, end=segment.end, arguments=arguments)


def _of_generation(g: Row, known: dict[str, str]) -> Slice:
    earliest, latest = min(g["prepared_at_earliest"], g["joined_at"]), min(g["prepared_at_latest"], g["joined_at"])
    if g["prepared_at"] is not None:
        earliest = latest = g["prepared_at"]
    return bounded_slice(
        f"{sentences.numbered(g)}: {sentences.trigger_with_verb_first(g, known)}",
        (earliest, latest),
        (ended(g), ended(g)),
        {
            "trigger evidence": g["trigger_evidence"],
            "evidence": g["evidence"],
            "duration": sentences.rebalance_length(g),
            "members": str(g["member_count"]),
            f"{sentences.unit(g['group_type'])}s moved": sentences.resources_moved(g),
            "lost": sentences.generation_loss(g),
            "folded": sentences.folded(g) or "no",
            "proof": proof(g),
        },
    )


def _of_delay(segment: Segment) -> Slice:
    return Slice(
        name=f"generation {segment.generation}: work waits for a worker to come back",
        start=segment.start,
        end=segment.end,
        arguments={"planned until": at(int(segment.proof)), "evidence": segment.evidence},
    )


def _of_event(event: Row) -> Instant:
    word = GLYPHS[GroupEventKind(event["kind"])].word
    arguments = {"at": at(event["event_at"]), "evidence": event["evidence"]}
    if event["detail"]:
        arguments["detail"] = visible(event["detail"])
    if not event["member_id"]:
        return Instant(name=word, at=event["event_at"], arguments=arguments)
    label = member_label(event["member_id"], event["group_instance_id"], event["client_id"])
    arguments |= {"member": visible(event["member_id"]), "host": host(event["client_host"])}
    return Instant(name=f"{word}: {visible(label, NAME)}", at=event["event_at"], arguments=arguments)


def _of_mark(mark: Row) -> Instant:
    return Instant(
        name=f"{flag_of(mark).word}: {visible(mark['text'], NAME)}",
        at=mark["marked_at"],
        arguments={"at": at(mark["marked_at"]), "of": mark_subject(mark), "by": visible(mark["marked_by"])},
    )
