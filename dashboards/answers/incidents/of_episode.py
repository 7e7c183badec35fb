"""The incident of an episode: rebalances of one group without a pause between them."""

from __future__ import annotations

from dashboards.answers.advise import advised
from dashboards.answers.incidents import timeline
from dashboards.answers.incidents.incident import COST, LINES_MOST, Incident, Section
from dashboards.answers.incidents.members import each_once, member_values, members_of, members_section
from dashboards.answers.incidents.of_rebalance import (
    group_path,
    lines_text,
    notices,
    open_text,
    rebalance_path,
    verdict_sections,
    verdict_text,
)
from dashboards.answers.why import NoAnswerError, Why
from dashboards.answers.why_text import is_answered, why_values
from dashboards.answers.written import at
from dashboards.figures.flags import flagged
from dashboards.figures.storms import rebalances_figure
from dashboards.lake.lake import Lake, Row
from dashboards.queries.generation_times import ended
from dashboards.queries.store import Store
from dashboards.text import instant, visible
from dashboards.urlstate import LATEST, State, Window
from dashboards.views import rebalance_facts, sentences
from dashboards.views.fact import Fact
from dashboards.views.marks import NEAR_MS, time_since_mark
from dashboards.views.verdict_words import NOT_OBSERVED, lines_sentence, sums_sentence
from dashboards.zone import zone
from schemas import loss_interval
from schemas.folded_rows import count_of
from schemas.states import GroupProtocol
from schemas.written import capitalized, count

MARGIN = 0.08
"""Part of the episode's length that the figure shows before and after it."""

LEAST_MARGIN_MS = 1_000
LEGEND = (("stopped", "everybody stopped"), ("partial", "moving partitions stopped"), ("", "dotted: inferred"))


def of_episode(lake: Lake, found: Why) -> Incident:
    """Return the incident of the episode of the rebalance that `why` or `why_generation` found.

    Raises:
        NoAnswerError: the rebalance is part of no episode: it did not complete.
    """
    store, group, episode = Store(lake), found.group["group_id"], found.found.episode
    if episode is None:
        raise NoAnswerError(
            f"The rebalance of {visible(group, 120)} is part of no episode, because it did not complete."
        )
    rows = _generations(store, episode)
    g = found.found.generation
    last = max([ended(row) for row in rows], default=ended(g))
    window = Window(episode["started_at_earliest"], (episode["ended_at"] or last) + 1, is_live=False)
    margin = max(LEAST_MARGIN_MS, round(window.width * MARGIN))
    shown = Window(window.start - margin, window.end + margin, is_live=False)
    wide = Window(window.start - NEAR_MS, window.end + NEAR_MS, is_live=False)
    marks = store.marks(wide, found.cluster, [group])
    is_over = episode["ended_at"] is not None
    moments = [("began", window.start), ("ended" if is_over else "not complete, last seen", window.end)]
    figure = rebalances_figure([group], rows, {}, shown, moments)
    flagged(figure, marks, first=shown.start, last=shown.end)
    lines, members = store.lines(found.cluster, group, shown), members_of(store, found.cluster, [group], window)
    numbers = rebalance_facts.episode_text(episode, g)
    values = why_values(found, "", now_ms=0, stale_ms=0)
    is_whole = count_of(rows) >= episode["generations"]
    return Incident(
        kind="episode",
        title=f"{visible(group, 120)}: episode of {count(episode['generations'], 'rebalance')}",
        cluster=found.cluster,
        window=window,
        seen=found.seen,
        is_answered=is_answered(found),
        verdict=_verdict(found),
        story=[
            f"{capitalized(numbers)}." + time_since_mark(marks, window.start, episode["started_at_latest"]),
            f"The rebalance to {sentences.numbered(g)} of it: {sentences.rebalance(found.found)}",
        ],
        figure=figure,
        caption=f"The rebalances of the episode, in time ({zone()}); the episode is shaded.",
        legend=LEGEND,
        timeline=timeline.in_order(
            [
                *timeline.of_marks(marks),
                *timeline.of_generations(rows[:LINES_MOST], is_named=False),
                *timeline.of_log(lines),
            ]
        ),
        timeline_text=lines_text(lines_sentence(lines), len(lines.rows))
        + ("" if is_whole and len(rows) <= LINES_MOST else " Not all of its rebalances are below."),
        sections=[
            *verdict_sections(found),
            members_section(members),
            Section(name=COST, facts=_cost(episode, g)),
        ],
        advice=[(group, advised(store, found.group))],
        pages=[
            (f"The rebalance to {sentences.numbered(g)}", rebalance_path(found)),
            ("The group, 15 min around", group_path(found, wide)),
            ("Advice for the group", State(page=None).href("advice", q=group[:512])),
        ],
        values={name: values[name] for name in ("group_id", "rebalance", "verdict")}
        | {"episode": _values(episode) | {"verdicts": values["episode"]}}
        | {"members": [member_values(last, first) for first, last in each_once(members)]},
        notices=notices(found),
        open_text=open_text(found),
    )


def _generations(store: Store, episode: Row) -> list[Row]:
    """Return the episode's generations with their cost, the oldest first; only the newest if there are very many."""
    end = episode["ended_at"]
    window = Window(episode["started_at_earliest"], LATEST if end is None else end + 1, is_live=False)
    found = store.generations(episode["cluster"], episode["group_id"], window).rows
    first, last = episode["first_generation_id"], episode["last_generation_id"]
    mine = [
        row for row in found
        if row["incarnation"] == episode["incarnation"] and first <= row["generation_id"] <= last
    ]  # fmt: skip
    return sorted(mine, key=lambda row: row["generation_id"])


def _verdict(found: Why) -> str:
    of = f"The rebalance to {sentences.numbered(found.found.generation)}: {verdict_text(found)}"
    if not found.episode or found.found.generation["group_protocol"] == GroupProtocol.SHARE:
        return of
    return f"By verdict: {sums_sentence(found.episode)}. {of}"


def _cost(episode: Row, g: Row) -> list[Fact]:
    word = sentences.unit(g["group_type"])
    is_share = g["group_protocol"] == GroupProtocol.SHARE
    lost = NOT_OBSERVED if is_share else loss_interval.of_row(episode)
    begun = [instant(episode[f"started_at_{end}"]) for end in ("earliest", "latest")]
    ended_at = episode["ended_at"]
    facts = [
        Fact(f"{word.capitalize()}-seconds lost", lost, None if is_share else episode["evidence"]),
        Fact("Rebalances", f"{episode['generations']:,}"),
        Fact("Began (UTC)", begun[0] if begun[0] == begun[1] else f"between {begun[0]} and {begun[1]}"),
        Fact("Ended (UTC)", "not complete as last seen" if ended_at is None else instant(ended_at)),
    ]
    if not is_share and episode["idle_resource_seconds"]:
        facts.append(Fact("Not counted: no member", f"{episode['idle_resource_seconds']:,.1f} {word}-seconds"))
    return facts


def _values(episode: Row) -> dict[str, object]:
    names = (
        "first_generation_id", "last_generation_id", "generations", "triggers", "evidence", "lost_resource_seconds",
        "lost_resource_seconds_min", "lost_resource_seconds_max", "lost_resource_seconds_low",
        "lost_resource_seconds_high",
    )  # fmt: skip
    times = ("started_at_earliest", "started_at_latest", "ended_at")
    return {name: episode.get(name) for name in names} | {name: at(episode[name]) for name in times}
