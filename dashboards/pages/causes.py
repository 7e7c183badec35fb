"""Causes: what was lost by verdict and cause over time, by cluster, team and group, and in the range before."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.causes import Cell, causes_figure, unseen_spans
from dashboards.lake.lake import Row
from dashboards.queries.ahead import ahead
from dashboards.queries.causes import Causes, Pending, Scope, compared
from dashboards.queries.differences import values_of
from dashboards.queries.store import KnownSpan, Store
from dashboards.teams import NO_TEAM
from dashboards.text import amount, instant, visible
from dashboards.urlstate import ALL, State, Window, window
from dashboards.views.buckets import Buckets, buckets
from dashboards.views.cause_table import cause_table, reach
from dashboards.views.comparison.differing import differing_panel
from dashboards.views.components import aria, empty, panel, table, tile
from dashboards.views.ranges import ranges
from dashboards.views.verdict_styles import PENDING, VERDICT_STYLES, verdict_legend
from dashboards.views.verdict_words import blamed
from dashboards.weeks import week_at
from dashboards.zone import zone
from schemas.written import count, percent

SHOWN = 100
"""Maximum number of rows of a table. The costliest groups are enough: sums of other splits contain all groups."""

YEAR_MS = 366 * 86_400_000

SPLIT_NAMES = (("", "All causes"), ("cluster", "By cluster"), ("team", "By team"), ("group", "By group"))
WEEKS = ((1, "Last week"), (0, "This week"))


def render(store: Store, state: State, now: int) -> list[Component]:
    seen = store.span(state.cluster)
    view, shown = window(state, now, (seen.first_at, seen.last_at) if seen else None)
    parts: list[Component] = [_head(state, shown, view, now)]
    if state.team and state.team not in (*store.teams.names, NO_TEAM):
        parts.append(
            _notice("The address's “team” is no team of the setting [teams]: showing the groups of all teams.")
        )
        state = replace(state, team="")
    if seen is None:
        return [*parts, _nothing(state)]
    if not seen.reaches(view):
        return [*parts, _unobserved(state, seen)]
    scope = Scope(cluster=state.cluster, team=state.team, verdict=state.verdict, cause=state.cause, teams=store.teams)
    drawn = _near_records(view, seen)
    causes, times = Causes(store, view, scope), buckets(drawn)
    over_time, waiting = ahead(causes.over_time, times.origin, times.slot_ms), ahead(causes.pending)
    pending = waiting.result()
    slots = ahead(causes.pending_by, "slot", pending, times.origin, times.slot_ms)
    before = Window(max(0, view.start - view.width), view.start, is_live=False)
    has_before = seen.first_at <= before.start
    values = ahead(values_of, store, view, before, scope) if has_before else None
    found = compared(store, view, before, scope, state.by, pending, SHOWN)
    cells = _cells(times, over_time.result().rows, slots.result())
    if "verdicts" not in store.versions():
        parts.append(_notice("No analysis has run yet (“regroup analyze”, or “up”), so nothing has a verdict."))
    if state.by == "team" and not store.teams:
        parts.append(_notice("The settings have no section [teams], so no group has a team."))
    return [
        *parts,
        _limits(state),
        html.P(_summary(cells, pending, times), className="summary"),
        _tiles(cells, pending),
        _over_time(state, drawn, seen, cells, times),
        cause_table(state, store, found.rows, pending, _pending_lost(cells), has_before=has_before, most=SHOWN),
        differing_panel(values.result() if values else None),
    ]


def _near_records(view: Window, seen: KnownSpan) -> Window:
    """Return the part of the range that is drawn: at most a year before the first record and after the newest one."""
    return Window(max(view.start, seen.first_at - YEAR_MS), min(view.end, seen.last_at + YEAR_MS), is_live=view.is_live)


def _head(state: State, shown: str, view: Window, now: int) -> Component:
    weeks = [week_at(now, before) for before, _ in WEEKS]
    links = [
        dcc.Link(
            word,
            href=state.href("causes", **reach(state), from_=week.start, to=week.end),
            title=f"{week.name}: Monday 00:00 to Monday 00:00, {zone()}",
            className="on" if (view.start, view.end) == (week.start, week.end) else "",
        )
        for (_, word), week in zip(WEEKS, weeks, strict=True)
    ]
    splits = [
        dcc.Link(
            word,
            href=state.href("causes", **reach(state) | {"by": by}),
            className="on" if by == state.by else "",
        )
        for by, word in SPLIT_NAMES
    ]
    choices = [
        html.Nav(splits, className="ranges", **aria("split")),
        html.Nav(links, className="ranges", **aria("calendar week")),
    ]
    return html.Div(
        [html.H1("Causes"), html.Div(choices, className="range"), ranges(state, shown, view)], className="head"
    )


def _nothing(state: State) -> Component:
    if not state.cluster:
        return empty("missing", "Nothing here yet", "No group has been observed.")
    clear = dcc.Link("All clusters", href=state.href("causes", **reach(state) | {"cluster": ""}), className="button")
    text = f"No group of the cluster “{visible(state.cluster, 60)}” has been observed."
    return empty("filtered", "Nothing matches the filter", text, clear)


def _notice(text: str) -> Component:
    return html.P(text, className="notice", role="status")


def _limits(state: State) -> Component:
    """Return what the sums are limited to, each part with a link that removes it."""
    names = {
        "cluster": f"cluster {visible(state.cluster, 60)}",
        "team": "groups without a team" if state.team == NO_TEAM else f"team {visible(state.team, 60)}",
        "verdict": f"blamed on {blamed(state.verdict)}",
        "cause": f"cause {visible(state.cause, 60)}",
    }
    used = [key for key in names if getattr(state, key)]
    if not used:
        return html.Div([])
    parts: list[Any] = ["Only "]
    for key in used:
        clear = dcc.Link(f"remove {key}", href=state.href("causes", **reach(state) | {key: ""}))
        parts += [f"{names[key]} (", clear, "), " if key != used[-1] else ")."]
    return html.P(parts)


def _unobserved(state: State, seen: KnownSpan) -> Component:
    return empty(
        "unobserved",
        "Not observed in this range",
        f"Records are of {instant(seen.first_at)[:19]} to {instant(seen.last_at)[:19]} {zone()}.",
        dcc.Link("Show all data", href=state.href("causes", **reach(state), from_=ALL, to=""), className="button"),
    )


def _cells(times: Buckets, judged: list[Row], pending: list[Row]) -> dict[tuple[str, int], Cell]:
    """Return loss and rebalances by verdict (or `PENDING`) and bucket."""
    found: dict[tuple[str, int], Cell] = defaultdict(lambda: (0.0, 0))
    for row in (*judged, *(row | {"verdict": PENDING} for row in pending)):
        key = str(row["verdict"]), times.of_slot(row["slot"])
        lost, rebalances = found[key]
        found[key] = lost + row["lost"], rebalances + row["rebalances"]
    return dict(found)


def _by_verdict(cells: dict[tuple[str, int], Cell]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for (name, _), (lost, _) in cells.items():
        if name != PENDING:
            found[name] += lost
    return found


def _pending_lost(cells: dict[tuple[str, int], Cell]) -> float:
    return sum(lost for (name, _), (lost, _) in cells.items() if name == PENDING)


def _summary(cells: dict[tuple[str, int], Cell], pending: Pending, times: Buckets) -> str:
    lost = _by_verdict(cells)
    whole, number = sum(lost.values()), sum(n for (name, _), (_, n) in cells.items() if name != PENDING)
    text = f"{amount(whole)} resource-seconds lost in {count(number, 'rebalance')} with a verdict"
    if whole > 0:
        most = max(lost, key=lambda name: lost[name])
        text += f"; {percent(lost[most] / whole)} of the loss: {blamed(most)}"
    if pending.rebalances:
        waiting = f"{count(pending.rebalances, 'rebalance')} not analyzed yet lost {amount(_pending_lost(cells))}"
        text += f". {waiting}, whatever the cause"
    return (
        f"{text}. One bar is {times.step}; a rebalance counts where its join phase ended. Stops of static members "
        "that returned without a rebalance have no verdict and are not in these sums."
    )


def _tiles(cells: dict[tuple[str, int], Cell], pending: Pending) -> Component:
    lost = _by_verdict(cells)
    tiles = [
        tile(
            VERDICT_STYLES[name].word.capitalize(),
            amount(lost.get(name, 0.0)),
            f"lost in {count(sum(n for (of, _), (_, n) in cells.items() if of == name), 'rebalance')}",
        )
        for name in VERDICT_STYLES
        if name != PENDING
    ]
    tiles.append(
        tile(
            VERDICT_STYLES[PENDING].word.capitalize(),
            amount(_pending_lost(cells)),
            f"lost in {count(pending.rebalances, 'rebalance')}",
            loud=pending.rebalances > 0,
        )
    )
    return html.Div(tiles, className="tiles many")


def _over_time(
    state: State, view: Window, seen: KnownSpan, cells: dict[tuple[str, int], Cell], times: Buckets
) -> Component:
    hrefs = [
        state.href("causes", **reach(state), from_=max(times.edges[at], view.start), to=times.edges[at + 1])
        for at in range(len(times))
    ]
    unseen = unseen_spans(view, times, seen.first_at, seen.last_at)
    figure = causes_figure(cells, times, hrefs, unseen)
    rows = [
        (
            f"{instant(times.edges[bucket])[:19]} {zone()}",
            VERDICT_STYLES[name].word if name in VERDICT_STYLES else visible(name, 40),
            amount(lost),
            number,
        )
        for (name, bucket), (lost, number) in sorted(cells.items(), key=lambda item: (item[0][1], item[0][0]))
    ]
    text = "Select a bar to see its time alone."
    if not cells:
        text = "No rebalance in the part of this range that was observed."
    if unseen:
        text += " Hatched: not observed."
    return panel(
        "Lost resource-seconds over time",
        text,
        figure,
        verdict_legend(),
        name="causes",
        table=table(("From", "Blamed on", "Lost resource-seconds", "Rebalances"), rows, empty="No rebalance."),
    )
