"""The incident of a storm: rebalances that deploys and scaling do not explain, of one group or of several."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.answers.advise import Advised, advised
from dashboards.answers.incidents import timeline
from dashboards.answers.incidents.incident import COST, LINES_MOST, EvidenceLine, Incident, Section
from dashboards.answers.incidents.members import each_once, member_values, members_of, members_section
from dashboards.answers.why import NoAnswerError, known_span
from dashboards.answers.written import at
from dashboards.figures.flags import flagged
from dashboards.figures.storms import GROUPS_SHOWN, storm_figure
from dashboards.lake.lake import Lake, Row
from dashboards.queries.store import Store
from dashboards.text import instant, visible
from dashboards.urlstate import State, Window
from dashboards.views import storm_words
from dashboards.views.fact import Fact
from dashboards.views.marks import NEAR_MS, time_since_mark
from dashboards.views.verdict_words import blamed, lines_sentence, opening, sums_sentence
from dashboards.zone import zone
from schemas.states import Evidence, Verdict
from schemas.written import amount, capitalized, count

GROUPS_READ = 10
"""Members, log lines and advice are read for this many groups, the hardest hit."""

GROUPS_LISTED = 100
LOG_LINES = 30
"""Log lines of each of these groups."""

LEAST_MARGIN_MS = 60_000
LEGEND = (("stopped", "everybody stopped"), ("partial", "moving partitions stopped"), ("", "dotted: inferred"))


def storm_at(lake: Lake, first: int, last: int) -> str:
    """Return the id of the costliest storm that overlaps a time in epoch ms.

    Raises:
        NoAnswerError: no storm is known at that time.
    """
    rows = Store(lake).storms(Window(first, last + 1, is_live=False)).rows
    if not rows:
        raise NoAnswerError("No storm is known at that time: the page Storms lists all of a range.")
    return str(max(rows, key=lambda row: row["lost_resource_seconds"])["storm_id"])


def of_storm(lake: Lake, storm_id: str) -> Incident:
    """Return the incident of a storm.

    Raises:
        NoAnswerError: no storm has this id.
    """
    store = Store(lake)
    row = store.storm(storm_id)
    if row is None:
        raise NoAnswerError(
            f"No storm has the id {visible(storm_id, 60)}. Later records may have shown that it began earlier, which "
            "gives it another id: the page Storms lists all of a range."
        )
    seen = store.span(row["cluster"]) or known_span(store)
    until = max(seen.last_at, row["detected_at"])
    end = row["ended_at"] if row["ended_at"] is not None else until
    view = Window(row["started_at"] - NEAR_MS, end + NEAR_MS, is_live=False)
    inside = Window(row["started_at"], end + 1, is_live=False)
    groups = list(row["group_ids"] or ())
    made = store.disturbed(row["cluster"], groups, view)
    marks = store.marks(view, row["cluster"], groups)
    shown = _drawn(inside)
    figure = storm_figure(row, groups, made.rows, {}, shown, until)
    flagged(figure, marks, first=shown.start, last=shown.end)
    hits = storm_words.hits(row, made.rows)
    worst = [hit["group_id"] for hit in hits[:GROUPS_READ]]
    lines = [store.lines(row["cluster"], group, inside) for group in worst]
    members = members_of(store, row["cluster"], worst, inside)
    during = sorted((g for g in made.rows if inside.start <= g["joined_at"] < inside.end), key=lambda g: g["joined_at"])
    notes = [lines_sentence(each) for each in lines if each.rows]
    return Incident(
        kind="storm",
        title=f"Storm: {storm_words.title(row)}",
        cluster=row["cluster"],
        window=inside,
        seen=seen,
        is_answered=row.get("verdict") not in (None, Verdict.UNKNOWN),
        verdict=_verdict(row),
        story=list(_story(row, until, marks)),
        figure=figure,
        caption=_caption(len(groups)),
        legend=LEGEND,
        timeline=timeline.in_order(
            [
                *timeline.of_marks(marks),
                *_moments(row, until),
                *timeline.of_generations(during[:LINES_MOST], is_named=True),
                *(line for each in lines for line in timeline.of_log(each, LOG_LINES)),
            ]
        ),
        timeline_text=f"{count(len(during), 'rebalance')} of the groups hit"
        + (f", the first {LINES_MOST} of them" if len(during) > LINES_MOST or made.is_capped else "")
        + f"; up to {LOG_LINES} log lines of each of the {GROUPS_READ} groups that lost most."
        + (f" Of the first: {notes[0]}" if notes else " No log line about them is known."),
        sections=list(_sections(row, until, hits, members)),
        advice=[(group, _advised(store, row["cluster"], group)) for group in worst],
        pages=[("This storm", State(page=None).href("storms", storm=storm_id)), *_group_pages(row, worst, view)],
        values=_values(row) | {"members": [member_values(last, first) for first, last in each_once(members)]},
        open_text=f"The storm is open, as last seen at {instant(until)[:19]} {zone()}." if row["is_open"] else "",
    )


def _advised(store: Store, cluster: str, group: str) -> Advised | None:
    row = store.group(cluster, group)
    return None if row is None else advised(store, row)


def _drawn(inside: Window) -> Window:
    """Return the span of the figure: three times the storm's, but at most 15 min before and after it."""
    margin = min(NEAR_MS, max(LEAST_MARGIN_MS, inside.width))
    return Window(inside.start - margin, inside.end + margin, is_live=False)


def _caption(groups: int) -> str:
    text = f"The rebalances of the groups hit, also shortly before and after ({zone()}); the storm is shaded."
    return text if groups <= GROUPS_SHOWN else f"{text} The {GROUPS_SHOWN} hardest hit of {groups} groups are drawn."


def _verdict(row: Row) -> str:
    found = row.get("verdicts")
    if storm_words.is_masked(row):
        return storm_words.HIDDEN
    if not found or row.get("verdict") is None:
        return "It has no verdict: none of its rebalances has one."
    first = f"{opening({**row, 'evidence': Evidence.INFERRED})}{blamed(row['verdict'])} ({Evidence.INFERRED})"
    return f"{first}. {capitalized(sums_sentence(found))}."


def _story(row: Row, until: int, marks: list[Row]) -> Iterator[str]:
    began = row["started_at"]
    yield capitalized(storm_words.storm_sentence(row, until)) + time_since_mark(marks, began, began)
    if not storm_words.is_masked(row):
        yield visible(row["explanation"], 2_000)


def _moments(row: Row, until: int) -> Iterator[EvidenceLine]:
    grade = row["evidence"] or "hidden"
    yield EvidenceLine(row["started_at"], row["started_at"], "The storm begins: its first unexplained rebalance", grade)
    yield EvidenceLine(row["detected_at"], row["detected_at"], "From here on, the records show a storm", grade)
    end = row["ended_at"]
    if end is None:
        yield EvidenceLine(until, until, "The newest record: the storm is still open", Evidence.OBSERVED)
    else:
        yield EvidenceLine(end, end, "The storm's last unexplained rebalance", grade)


def _causes(row: Row) -> list[Fact]:
    """Return the facts about the cause, without the explanation, which the story has."""
    return [fact for fact in storm_words.cause_facts(row) if fact.name != storm_words.WHY_COUNTED]


def _sections(row: Row, until: int, hits: list[Row], members: list[Row]) -> Iterator[Section]:
    if storm_words.is_masked(row):
        yield Section(name="Cause", text=storm_words.HIDDEN)
    else:
        yield Section(name="Cause", facts=_causes(row))
    if row.get("verdicts"):
        yield Section(
            name="By verdict",
            text="The completed rebalances of the groups hit, by what each is blamed on.",
            head=("Verdict", "Rebalances", "Lost resource-seconds"),
            rows=[
                (blamed(each["verdict"]), f"{each['rebalances']:,}", amount(each["lost_resource_seconds"]))
                for each in row["verdicts"]
            ],
        )
    if causes := storm_words.cause_cells(row):
        yield Section(name="Causes", text=storm_words.causes_sentence(row), head=storm_words.CAUSES_HEAD, rows=causes)
    if not storm_words.is_masked(row):
        different = storm_words.difference_cells(row)
        head = storm_words.difference_head(row) if different else ()
        yield Section(name="What is different", text=storm_words.differences_sentence(row), head=head, rows=different)
    more = f" The first {GROUPS_LISTED} are listed." if len(hits) > GROUPS_LISTED else ""
    yield Section(
        name="Groups",
        text=f"{count(len(hits), 'group')}, hardest hit first.{more}",
        head=("Group", "Rebalances in the storm", "Lost resource-seconds"),
        rows=[(visible(hit["group_id"], 80), *storm_words.hit_figures([hit])) for hit in hits[:GROUPS_LISTED]],
    )
    few = f" Of the {GROUPS_READ} groups that lost most." if len(hits) > GROUPS_READ else ""
    yield members_section(members, few)
    yield Section(name=COST, facts=storm_words.cost_facts(row, until))


def _group_pages(row: Row, groups: list[str], view: Window) -> Iterator[tuple[str, str]]:
    for group in groups:
        here = {"cluster": row["cluster"], "group": group}
        yield (
            f"The group {visible(group, 80)}",
            State(page=None).href("group", **here, from_=view.start, to=view.end),
        )


def _values(row: Row) -> dict[str, object]:
    names = (
        "storm_id", "scope", "is_open", "groups", "group_ids", "rebalances", "unexplained_rebalances",
        "suspected_cause", "score", "causes", "by_group", "differences", "evidence", "explanation", "verdict",
        "verdicts", "lost_resource_seconds", "lost_resource_seconds_min", "lost_resource_seconds_max",
        "lost_resource_seconds_low", "lost_resource_seconds_high",
    )  # fmt: skip
    times = {name: at(row[name]) for name in ("started_at", "detected_at", "ended_at")}
    return {"storm": {name: row.get(name) for name in names} | times}
