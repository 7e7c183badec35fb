"""Evidence in order of time: records, log lines and marks, each with how it is known and where it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dashboards.answers.incidents.incident import ANNOUNCED, LINES_MOST, EvidenceLine
from dashboards.lake.lake import Row, Rows
from dashboards.queries.store import Rebalance
from dashboards.text import duration, host, member_label, visible
from dashboards.views import sentences
from dashboards.views.marks import flag_of, mark_subject
from dashboards.views.rebalance_facts import start_of
from dashboards.views.theme import GLYPHS
from dashboards.views.timelines.segments import proof
from dashboards.views.verdict_words import without_hosts
from schemas import loss_interval
from schemas.states import Evidence, GroupProtocol, MarkKind
from schemas.written import capitalized, count

GRADES = (Evidence.OBSERVED, Evidence.BOUNDED, Evidence.INFERRED)
"""From the surest to the least sure."""


def in_order(lines: Iterable[EvidenceLine]) -> list[EvidenceLine]:
    """Return the lines by their latest possible time, then by their earliest."""
    return sorted(lines, key=lambda line: (line.latest, line.earliest))


def of_marks(marks: Sequence[Row]) -> list[EvidenceLine]:
    """Return the marks, each with its subject and its sender. Changes of pods are observed by Kubernetes."""
    return [
        EvidenceLine(
            mark["marked_at"],
            mark["marked_at"],
            f"{capitalized(flag_of(mark).word)}: {visible(mark['text'], 120)} ({mark_subject(mark)})",
            Evidence.OBSERVED if mark["kind"] == MarkKind.KUBERNETES else ANNOUNCED,
            "" if mark["marked_by"] is None else f"by {visible(mark['marked_by'], 60)}",
        )
        for mark in marks
    ]


def of_log(lines: Rows, most: int = LINES_MOST) -> list[EvidenceLine]:
    """Return log lines without client addresses, at most the first `most`. `lines` are the newest first."""
    return [
        EvidenceLine(
            line["event_at"],
            line["event_at"] + max(0, (line["event_precision_ms"] or 1) - 1),
            visible(without_hosts(line["raw"]), 400),
            Evidence.OBSERVED,
            f"{visible(line['source_id'], 80)}:{line['line_no']}",
        )
        for line in [each for each in reversed(lines.rows) if each.get("raw")][:most]
    ]


def of_rebalance(found: Rebalance) -> list[EvidenceLine]:
    """Return the steps of a rebalance: start, departures, the slowest member, assignment, end, and stopped work."""
    g, known = found.generation, sentences.names(found.named)
    earliest, latest = start_of(g)
    begun = f"The rebalance begins: {sentences.trigger(g, known)} ({g['trigger_evidence']})"
    grade = Evidence.OBSERVED if g["prepared_at"] is not None else g["evidence"]
    lines = [EvidenceLine(earliest, latest, begun, grade)]
    lines += [_event(event) for event in found.events]
    lines += _slowest(found, known)
    lines.append(EvidenceLine(g["joined_at"], g["joined_at"], _joined(g), Evidence.OBSERVED, proof(g)))
    if g["synced_at"] is not None:
        lines.append(EvidenceLine(g["synced_at"], g["synced_at"], "The assignment is stored", Evidence.OBSERVED))
    if g["completed_at"] is not None:
        state = "empty" if g["is_empty"] else "stable"
        text = f"The group is {state}; the rebalance took {sentences.rebalance_length(g)} ({g['evidence']})"
        lines.append(EvidenceLine(g["completed_at"], g["completed_at"], text, Evidence.OBSERVED))
    return [*lines, *_stops(found)]


def _joined(g: Row) -> str:
    number = sentences.numbered(g)
    if g["is_empty"]:
        return f"{capitalized(number)} has no member"
    if sentences.term(g) == "generation":
        return f"Every member has rejoined: {number}"
    return f"The coordinator has a new assignment: {number}"


def _event(event: Row) -> EvidenceLine:
    word = next((glyph.word for kind, glyph in GLYPHS.items() if kind == event["kind"]), visible(event["kind"], 60))
    at, who = event["event_at"], event["member_id"]
    if who:
        label = visible(member_label(who, event["group_instance_id"], event["client_id"]), 80)
        where = "" if event["client_host"] is None else f" on {host(event['client_host'], 60)}"
        word = f"{label}{where}: {word}"
    return EvidenceLine(at, at, word if who else capitalized(word), event["evidence"])


def _slowest(found: Rebalance, known: dict[str, str]) -> list[EvidenceLine]:
    g = found.generation
    member = next((m for m in found.members if m["member_id"] == g["slowest_member_id"]), None)
    if member is None or g["slowest_waited_ms"] is None or member["rejoined_at_latest"] is None:
        return []
    latest = member["rejoined_at_latest"]
    earliest = latest if member["rejoined_at_earliest"] is None else member["rejoined_at_earliest"]
    name = known.get(g["slowest_member_id"], visible(member_label(g["slowest_member_id"]), 60))
    text = f"{name} rejoins last: everyone waited {duration(g['slowest_waited_ms'])} for it"
    return [EvidenceLine(earliest, latest, text, Evidence.OBSERVED if latest - earliest <= 1 else Evidence.BOUNDED)]


def _stops(found: Rebalance) -> list[EvidenceLine]:
    """Return when work stopped and when the last of it resumed, each within the bounds of all stops."""
    stops = found.stopped
    if not stops or found.generation["group_protocol"] == GroupProtocol.SHARE:
        return []
    word, grade = sentences.unit(found.generation["group_type"]), _least_sure(stops)
    first = min(s["stopped_at_earliest"] for s in stops), max(s["stopped_at_latest"] for s in stops)
    lines = [EvidenceLine(*first, f"{count(len(stops), word)} stopped", grade)]
    over = [s for s in stops if s["resumed_at_latest"] is not None]
    if over:
        back = max(s["resumed_at_earliest"] for s in over), max(s["resumed_at_latest"] for s in over)
        rest = f"; {count(len(stops) - len(over), word)} without an owner since" if len(over) < len(stops) else ""
        lines.append(EvidenceLine(*back, f"The last of {count(len(over), word)} resumes{rest}", _least_sure(over)))
    return lines


def _least_sure(rows: Sequence[Row]) -> str:
    found = {row["evidence"] for row in rows}
    return next((grade for grade in reversed(GRADES) if grade in found), Evidence.INFERRED)


def of_generations(rows: Sequence[Row], *, is_named: bool) -> list[EvidenceLine]:
    """Return one line per rebalance at the time of its record: trigger, length and loss.

    With `is_named`, the line has the group's name.
    """
    return [_generation(g, f"{visible(g['group_id'], 80)}: " if is_named else "") for g in rows]


def _generation(g: Row, group: str) -> EvidenceLine:
    text = f"{group}{sentences.numbered(g)}, {sentences.trigger(g, {})} ({g['trigger_evidence']}); "
    text += f"took {sentences.rebalance_length(g)} ({g['evidence']}), {loss_text(g)}"
    return EvidenceLine(g["joined_at"], g["joined_at"], text, Evidence.OBSERVED, proof(g))


def loss_text(g: Row) -> str:
    """Return what a row of generations with its cost lost, in words."""
    if g["group_protocol"] == GroupProtocol.SHARE:
        return "the loss is not observed"
    if not sentences.is_costed(g):
        return sentences.not_costed(g) or "the loss is not known"
    return f"lost {loss_interval.written(g['lost'], g['lost_low'], g['lost_high'])} resource-seconds"
