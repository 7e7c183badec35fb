"""An incident as a document of text, tables and a drawing, and as values of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dashboards.answers.advise import Advised, advise_values, saving_text, settings_of
from dashboards.answers.blocks import (
    Block,
    Code,
    Drawing,
    Heading,
    Items,
    Links,
    Pairs,
    Paragraph,
    TextTable,
    html,
    markdown,
)
from dashboards.answers.group_advice import recommended
from dashboards.answers.incidents.incident import COST, Attached, EvidenceLine, Incident, Section
from dashboards.answers.written import at
from dashboards.figures.svg import svg
from dashboards.lake.lake import Row
from dashboards.text import duration, future, instant, is_ahead, visible, zoned
from dashboards.views import sentences
from dashboards.views.fact import Fact
from dashboards.zone import zone
from schemas import written
from schemas.written import EN_DASH

GRADES = (
    "How each line is known: observed (a record or log line has it), bounded (it lies within the given times), "
    "inferred (a model estimated it), announced (somebody said so)."
)


def as_markdown(found: Incident, base_url: str, *, now_ms: int, stale_ms: int, attached: Attached | None = None) -> str:
    """Return the document as Markdown. Its figure is in the HTML only.

    `base_url` is the address of the pages, without a slash at its end. Data older than `stale_ms` is reported, because
    nothing is known of what happened since.
    """
    return markdown(blocks(found, base_url, now_ms=now_ms, stale_ms=stale_ms, attached=attached))


def as_html(found: Incident, base_url: str, *, now_ms: int, stale_ms: int, attached: Attached | None = None) -> str:
    """Return the document as one HTML page with its figure, which loads nothing, runs no script and can be printed."""
    return html(blocks(found, base_url, now_ms=now_ms, stale_ms=stale_ms, attached=attached), found.title)


def blocks(
    found: Incident, base_url: str, *, now_ms: int, stale_ms: int, attached: Attached | None = None
) -> Iterator[Block]:
    """Yield the parts of the document, in the order of reading."""
    yield Heading(1, found.title)
    when = _between(instant(found.window.start)[:19], instant(found.window.end - 1)[:19], EN_DASH)
    written_at = f"Written at {instant(now_ms)[:19]} {zone()}."
    yield Paragraph(f"Cluster {visible(found.cluster, 60)}, {when} {zone()}. {written_at}")
    for text in _state(found, now_ms, stale_ms):
        yield Paragraph(text)
    yield Heading(2, "Verdict")
    yield Paragraph(found.verdict)
    yield Heading(2, "What happened")
    for text in found.story:
        yield Paragraph(text)
    yield Drawing(svg(found.figure, f"{found.title}. {found.caption}", found.legend), found.caption)
    for section in found.sections:
        yield from _section(section)
    yield Heading(2, "What to change")
    for group, advice in found.advice:
        yield from _advice(group, advice, is_named=len(found.advice) > 1)
    if not found.advice:
        yield Paragraph("Nothing is known: no group is named.")
    yield Heading(2, "Timeline")
    yield Paragraph(f"{GRADES} {found.timeline_text}")
    yield TextTable((f"Time ({zone()})", "What", "Known by", "Where"), [_cells(line) for line in found.timeline])
    yield Heading(2, "Pages")
    yield Links([(name, f"{base_url}{path}") for name, path in found.pages])
    yield Heading(2, "Capture")
    yield from _capture(found, attached)


def _state(found: Incident, now_ms: int, stale_ms: int) -> Iterator[str]:
    yield from found.notices
    until = found.seen.until.get(found.cluster, found.seen.last_at)
    age = now_ms - until
    how_old = future(-age) if is_ahead(until, now_ms) else f"{duration(max(0, age))} old"
    text = f"The newest record of the cluster is of {instant(until)[:19]} {zone()}, {how_old}"
    yield f"{text}: what happened since is not known." if age > stale_ms else f"{text}."
    if found.open_text:
        yield found.open_text


def _section(section: Section) -> Iterator[Block]:
    yield Heading(2, section.name)
    if section.text:
        yield Paragraph(section.text)
    if section.facts:
        yield Pairs([(zoned(fact.name), _value(fact)) for fact in section.facts])
    if section.rows:
        yield TextTable([zoned(head) for head in section.head], [[str(cell) for cell in row] for row in section.rows])


def _value(fact: Fact) -> str:
    return fact.text if fact.evidence is None else f"{fact.text} ({fact.evidence})"


def _advice(group: str, advice: Advised | None, *, is_named: bool) -> Iterator[Block]:
    if is_named:
        yield Heading(3, visible(group, 120))
    if advice is None:
        yield Paragraph("Not analyzed yet: run `regroup analyze`.")
        return
    changes = recommended(advice.rows)
    if not changes:
        replayed = any(row["lost_predicted"] is not None for row in advice.rows)
        none = "No change is recommended." if replayed else "Whether another setting would help is not known."
        yield Paragraph(f"{none} {visible(advice.rows[0]['explanation'], 2_000)}")
    for number, row in enumerate(changes, 1):
        yield from _change(number, row, advice)


def _change(number: int, row: Row, advice: Advised) -> Iterator[Block]:
    yield Heading(3, f"{number}. {written.capitalized(sentences.action(row['action']))}{saving_text(row)}")
    yield Paragraph(visible(row["explanation"], 2_000))
    if row["preconditions"]:
        yield Items([visible(text, 300) for text in row["preconditions"]])
    for place, text in settings_of(advice, row).items():
        yield Paragraph(f"{visible(place, 80)}:")
        yield Code("\n".join(visible(line, 400) for line in text.splitlines()))


def _cells(line: EvidenceLine) -> tuple[str, ...]:
    when = _between(instant(line.earliest), instant(line.latest), " to ")
    return (when, line.text, line.evidence, line.place)


def _between(first: str, last: str, word: str) -> str:
    """Return both times around `word`, without the day of the second if it is the same; one if they are equal."""
    if first == last:
        return first
    return f"{first}{word}{last[11:] if first[:10] == last[:10] else last}"


def _capture(found: Incident, attached: Attached | None) -> Iterator[Block]:
    if attached is None:
        name = visible(found.cluster, 60)
        yield Paragraph(
            "None is attached. While the topic still has the records, "
            f"`regroup capture --cluster {name} --out FOLDER` records them, and "
            "`regroup incident … --capture FOLDER` attaches them."
        )
        return
    yield Links([("The capture, for `regroup replay`", attached.file)], is_file=True)
    yield Pairs([("Size", f"{attached.size:,} bytes ({written.size(attached.size)})"), ("SHA-256", attached.sha256)])
    yield Paragraph("It holds the records of all groups of its cluster, not only of those of this document.")


def values(
    found: Incident, base_url: str, *, now_ms: int, stale_ms: int, attached: Attached | None = None
) -> dict[str, Any]:
    """Return the incident as values of JSON, with names as they are and times in ISO 8601 (UTC)."""
    until = found.seen.until.get(found.cluster, found.seen.last_at)
    return {
        "kind": found.kind,
        "cluster": found.cluster,
        "from": at(found.window.start),
        "to": at(found.window.end - 1),
        "newest_record_at": at(until),
        "is_stale": now_ms - until > stale_ms,
        "is_answered": found.is_answered,
        "sentences": {"verdict": found.verdict, "story": list(found.story), "notices": list(found.notices)},
        **found.values,
        "timeline": [
            {"from": at(line.earliest), "to": at(line.latest), "text": line.text, "evidence": line.evidence}
            | {"place": line.place}
            for line in found.timeline
        ],
        "cost": {fact.name: _value(fact) for each in found.sections if each.name == COST for fact in each.facts},
        "advice": [None if advice is None else advise_values(advice) for _, advice in found.advice],
        "pages": {name: f"{base_url}{path}" for name, path in found.pages},
        "capture": None if attached is None else asdict(attached),
    }
