"""The incident of one rebalance."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.answers.advise import advised
from dashboards.answers.incidents import timeline
from dashboards.answers.incidents.incident import COST, LINES_MOST, Incident, Section
from dashboards.answers.incidents.members import member_values
from dashboards.answers.why import Why, began
from dashboards.answers.why_text import is_answered, why_values
from dashboards.figures import waterfall
from dashboards.lake.lake import Lake
from dashboards.queries.generation_times import ended
from dashboards.queries.lag import lag_sentence
from dashboards.queries.store import Store
from dashboards.text import duration, instant, visible
from dashboards.urlstate import State, Window
from dashboards.views import rebalance_facts, sentences, verdict_words
from dashboards.views.clients import measured
from dashboards.views.fact import Fact
from dashboards.views.marks import time_since_mark
from dashboards.zone import zone
from schemas.states import GroupProtocol

MEMBERS_LISTED = 200
LEGEND = (
    ("stopped", "everybody stopped"),
    ("assigning", "assigning"),
    ("partial", "moving partitions stopped"),
    ("", "▲ rejoined or reconciled"),
    ("", "◇ first commit"),
    ("", "faded: bounded"),
    ("", "dotted: inferred"),
)
NO_VERDICT = "It has no verdict: it did not complete, or `analyze` has not seen it yet."


def of_rebalance(lake: Lake, found: Why) -> Incident:
    """Return the incident of the rebalance that `why` or `why_generation` found."""
    store, g, group = Store(lake), found.found.generation, found.group["group_id"]
    marks = store.marks(rebalance_facts.around(g), found.cluster, [group])
    figure, whole = waterfall.marked_waterfall(found.found, marks)
    near = Window(whole.start - rebalance_facts.BEFORE_MS, whole.end + rebalance_facts.AFTER_MS, is_live=False)
    lines = store.lines(found.cluster, group, near)
    story = sentences.rebalance(found.found) + time_since_mark(marks, *rebalance_facts.start_of(g))
    story += lag_sentence(store.behind(found.cluster, group, near), near.start, near.end)
    values = why_values(found, "", now_ms=0, stale_ms=0)
    members = found.found.members
    more = "" if len(members) <= MEMBERS_LISTED else f" The first {MEMBERS_LISTED} are listed."
    return Incident(
        kind="rebalance",
        title=f"{visible(group, 120)}: rebalance to {sentences.numbered(g)}",
        cluster=found.cluster,
        window=Window(began(g), ended(g) + 1, is_live=False),
        seen=found.seen,
        is_answered=is_answered(found),
        verdict=verdict_text(found),
        story=[story, *_episode(found)],
        figure=figure,
        caption=f"Seconds since {instant(waterfall.began(g))} {zone()}: who was waited for, and what stopped how long.",
        legend=LEGEND,
        timeline=timeline.in_order(
            [*timeline.of_marks(marks), *timeline.of_rebalance(found.found), *timeline.of_log(lines)]
        ),
        timeline_text=lines_text(verdict_words.lines_sentence(lines), len(lines.rows)),
        sections=[
            *verdict_sections(found),
            Section(name="Why it began", facts=rebalance_facts.cause_facts(found.found)),
            Section(
                name="Members",
                text=rebalance_facts.members_sentence(g) + more,
                head=rebalance_facts.member_head(g),
                rows=[rebalance_facts.member_cells(g, m) for m in members[:MEMBERS_LISTED]],
            ),
            *_measured(found),
            Section(name=COST, facts=rebalance_facts.cost_facts(found.found)),
        ],
        advice=[(group, advised(store, found.group))],
        pages=[
            ("This rebalance", rebalance_path(found)),
            ("The group, 15 min around", group_path(found, rebalance_facts.around(g))),
            ("Advice for the group", State(page=None).href("advice", q=group[:512])),
        ],
        values={name: values[name] for name in ("group_id", "rebalance", "verdict", "episode", "measured")}
        | {"members": [member_values(m) for m in members]},
        notices=notices(found),
        open_text=open_text(found),
    )


def verdict_text(found: Why) -> str:
    """Return the verdict with its grade and its reason, or that there is none."""
    row = found.verdict
    if row is None:
        return NO_VERDICT
    blamed = f"{verdict_words.opening(row)}{verdict_words.blamed(row['verdict'])} ({row['evidence']})"
    return f"{blamed}. {visible(row['reason'], 600)}"


def verdict_sections(found: Why) -> Iterator[Section]:
    """Yield whom the verdict names, what that cost, and its proof; nothing without a verdict."""
    row = found.verdict
    if row is None:
        return
    protocol = found.found.generation["group_protocol"]
    yield Section(
        name="Verdict in detail",
        facts=[
            Fact("Cause", verdict_words.cause_of(row)),
            Fact("Who", verdict_words.instances_of(row)),
            Fact("On", verdict_words.hosts_of(row)),
            Fact("Lost resource-seconds", verdict_words.lost_of(row, protocol)),
            *(Fact("Proof", visible(each, 300)) for each in row["proof"]),
        ],
    )


def _measured(found: Why) -> Iterator[Section]:
    """Yield what the members measured themselves; nothing if none pushed."""
    if found.measured:
        yield Section(
            name="What the members measured",
            text=measured.measured_text(found.measured, found.found.everybody),
            head=measured.HEAD,
            rows=[measured.measured_cells(row) for row in found.measured[:MEMBERS_LISTED]],
        )


def _episode(found: Why) -> Iterator[str]:
    episode, g = found.found.episode, found.found.generation
    if episode is None or episode["generations"] <= 1:
        return
    yield f"It is part of an episode: {rebalance_facts.episode_text(episode, g)}."
    if found.episode and g["group_protocol"] != GroupProtocol.SHARE:
        yield f"Of the episode: {verdict_words.sums_sentence(found.episode)}."


def notices(found: Why) -> list[str]:
    """Return how the rebalance was chosen, if another one was asked for."""
    if found.away_ms:
        return [f"No rebalance at that time. This is the nearest one, {duration(found.away_ms)} away."]
    return []


def open_text(found: Why) -> str:
    """Return that another rebalance of the group is not complete; empty if none is known."""
    since = found.group["open_rebalance_since_at"]
    return "" if since is None else f"Another rebalance began at {instant(since)[:19]} {zone()} and is not complete."


def lines_text(sentence: str, number: int) -> str:
    """Return the sentence about log lines, and how many of them the timeline has."""
    text = f"Log lines: {sentence}"
    return text if number <= LINES_MOST else f"{text} The first {LINES_MOST} are below."


def rebalance_path(found: Why) -> str:
    """Return the address of the rebalance's page, without host."""
    g = found.found.generation
    key = {"incarnation": g["incarnation"], "generation": g["generation_id"]}
    return State(page=None).href("rebalance", cluster=found.cluster, group=found.group["group_id"], **key)


def group_path(found: Why, window: Window) -> str:
    """Return the address of the group's page with this range, without host."""
    here = {"cluster": found.cluster, "group": found.group["group_id"]}
    return State(page=None).href("group", **here, from_=window.start, to=window.end)
