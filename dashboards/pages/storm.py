"""One storm: its groups over time, its cost, the suspected cause, and what the groups hit have in common."""

from __future__ import annotations

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.flags import flagged
from dashboards.figures.storms import GROUPS_SHOWN, key, storm_figure
from dashboards.lake.lake import Row, Rows
from dashboards.queries.store import Store
from dashboards.text import ABSENT, duration, instant, visible
from dashboards.urlstate import State, Window
from dashboards.views import sentences
from dashboards.views.components import Cell, empty, evidence_mark, facts, legend, marks_table, panel, table
from dashboards.views.marks import NEAR_MS, time_since_mark
from dashboards.views.ranges import drawn, part
from dashboards.views.storm_hits import causes_panel, groups_panel, rebalance_href
from dashboards.views.verdicts import storm_panel, storm_verdict
from schemas import loss_interval
from schemas.states import DiagnosisCause, StormScope
from schemas.written import capitalized, count, percent

TABLE_ROWS = 200


def render(store: Store, state: State, now: int) -> list[Component]:
    """Return the page of the storm in the address; an open storm lasts to the newest record of its cluster."""
    row = store.storm(state.storm)
    if row is None:
        return [_head(state, None, None), _unknown(store, state)]
    seen = store.span(row["cluster"])
    until = max(now if seen is None else seen.last_at, row["detected_at"])
    end = row["ended_at"] if row["ended_at"] is not None else until
    view = Window(row["started_at"] - NEAR_MS, end + NEAR_MS, is_live=False)
    groups = list(row["group_ids"] or ())
    made = store.disturbed(row["cluster"], groups, view)
    marks = store.marks(view, row["cluster"], groups)
    return [
        _head(state, row, view),
        html.Div([*filter(None, [storm_verdict(row)])]),
        html.P(
            capitalized(storm_sentence(row, until)) + time_since_mark(marks, row["started_at"], row["started_at"]),
            className="sentence",
        ),
        html.Div([*filter(None, [storm_panel(row)])]),
        _timeline(state, row, made, marks, drawn(state, view), until),
        html.Div([_cause(row), _cost(row, until)], className="columns"),
        *filter(None, [causes_panel(row)]),
        _differences(row),
        groups_panel(state, row, made.rows, view),
        html.Section([html.H2("Marks nearby"), marks_table(marks)], className="panel"),
    ]


def title(row: Row) -> str:
    """Return `5 groups together`, or the id of the only group."""
    groups = row["group_ids"] or ()
    if row["scope"] == StormScope.GROUP and groups:
        return visible(groups[0], 80)
    return f"{count(row['groups'], 'group')} together"


HIDDEN = "It also hit groups that you may not see, so its cause and the other groups are hidden."


def is_masked(row: Row) -> bool:
    """Return whether the storm also hit groups that the reader may not see; then most of the row is missing."""
    return row["evidence"] is None


def storm_sentence(row: Row, until: int) -> str:
    """Describe the storm in a sentence: duration, unexplained rebalances, cost and suspected cause."""
    lasted = duration(max(0, (row["ended_at"] or until) - row["started_at"]))
    if is_masked(row):
        return (
            f"{'open for' if row['is_open'] else 'it lasted'} {lasted}; {count(row['groups'], 'group')}; "
            f"{loss_interval.of_row(row)} resource-seconds lost. {HIDDEN}"
        )
    cause = (
        "no cause stands out"
        if row["suspected_cause"] in (None, DiagnosisCause.UNKNOWN)
        else f"suspected: {sentences.cause(row['suspected_cause'])} (score {row['score'] or 0:.2f})"
    )
    return (
        f"{'open for' if row['is_open'] else 'it lasted'} {lasted}; {count(row['groups'], 'group')}, "
        f"{count(row['rebalances'], 'rebalance')}, {row['unexplained_rebalances']:,} of them beyond what deploys, "
        f"scaling and follow-ups explain; {loss_interval.of_row(row)} resource-seconds lost; {cause}."
    )


def _head(state: State, row: Row | None, whole: Window | None) -> Component:
    crumbs: list[Component | str] = [
        dcc.Link("Fleet", href=state.href("fleet")),
        " / ",
        dcc.Link("Storms", href=state.href("storms")),
    ]
    if row is not None:
        crumbs += [" / ", visible(row["cluster"], 60)]
    heading = "Storm" if row is None else f"Storm: {title(row)}"
    named = html.Div([html.P(crumbs, className="crumbs"), html.H1(heading)])
    return html.Div([named, part(state, whole)] if whole is not None else [named], className="head")


def _unknown(store: Store, state: State) -> Component:
    if "storms" not in store.versions():
        return empty("missing", "Nothing here yet", "No analysis has run yet (“regroup analyze”, or “up”).")
    text = "No storm has this id. Later records may have shown that it began earlier, which gives it another id."
    return empty(
        "missing", "No such storm", text, dcc.Link("All storms", href=state.href("storms"), className="button")
    )


def _timeline(state: State, row: Row, made: Rows, marks: list[Row], view: Window, until: int) -> Component:
    groups = list(row["group_ids"] or ())
    hrefs = {key(g): rebalance_href(state, row, g) for g in made.rows}
    figure = storm_figure(row, groups, made.rows, hrefs, view, until)
    flagged(figure, marks, first=view.start, last=view.end)
    notes = f" The {GROUPS_SHOWN} hardest hit of {len(groups)} groups are drawn." if len(groups) > GROUPS_SHOWN else ""
    notes += " Only the newest rebalances are drawn." if made.is_capped else ""
    listed: list[list[Cell]] = [
        [visible(g["group_id"], 80), dcc.Link(str(g["generation_id"]), href=hrefs[key(g)]), instant(g["joined_at"]),
         g["trigger"].replace("_", " "), sentences.rebalance_length(g),
         loss_interval.written(g["lost"], g["lost_low"], g["lost_high"]), evidence_mark(g["evidence"])]
        for g in made.rows[:TABLE_ROWS]
    ]  # fmt: skip
    head = ("Group", "Generation", "Joined (UTC)", "Trigger", "Took", "Lost", "Evidence")
    text = f"Every rebalance of the groups hit, from 15 min before to 15 min after; the storm is shaded.{notes}"
    body = html.Div(
        [table(head, listed, empty="No rebalance of these groups is known."), html.H3("Marks"), marks_table(marks)]
    )
    return panel("Who was hit", text, figure, legend(styles=("stopped", "partial")), name="storm", table=body)


def _cause(row: Row) -> Component:
    if is_masked(row):
        return html.Section([html.H2("Cause"), html.P(HIDDEN, className="summary")], className="panel")
    pairs: list[tuple[str, Cell]] = [
        ("Suspected cause", html.Span([sentences.cause(row["suspected_cause"]), " ", evidence_mark(row["evidence"])])),
        ("Score", f"{row['score'] or 0:.2f}: its share of {_voices(row)}, by their diagnoses"),
        ("Why it counts as a storm", visible(row["explanation"], 2_000)),
    ]
    return html.Section([html.H2("Cause"), facts(pairs)], className="panel")


def _voices(row: Row) -> str:
    return (
        "the unexplained rebalances"
        if row["scope"] == StormScope.GROUP
        else "the groups, by each group's cause at its start"
    )


def _cost(row: Row, until: int) -> Component:
    ended = f"still open at {instant(until)[:19]}" if row["ended_at"] is None else instant(row["ended_at"])
    pairs: list[tuple[str, Cell]] = [
        (
            "Resource-seconds lost",
            loss_interval.of_row(row) if row["lost_resource_seconds_max"] else "none",
        ),
        (
            "Rebalances",
            ABSENT
            if is_masked(row)
            else f"{row['rebalances']:,}, {row['unexplained_rebalances']:,} of them unexplained",
        ),
        ("Began (UTC)", instant(row["started_at"])),
        ("Detected (UTC)", f"{instant(row['detected_at'])}, {duration(row['detected_at'] - row['started_at'])} later"),
        ("Ended (UTC)", ended),
    ]
    return html.Section([html.H2("Cost"), facts(pairs)], className="panel")


def _differences(row: Row) -> Component:
    if is_masked(row):
        return html.Section([html.H2("What is different"), html.P(HIDDEN, className="summary")], className="panel")
    found = row["differences"] or ()
    rows = [
        (
            visible(d["attribute"], 60).replace("_", " "),
            visible(d["value"], 120),
            percent(d["share"]),
            percent(d["baseline"]),
            "nowhere else" if not d["baseline"] else f"{d['lift']:,.1f} times",
        )
        for d in found
    ]
    is_fleet = row["scope"] == StormScope.FLEET
    those, rest = ("groups hit", "other groups") if is_fleet else ("members that caused it", "the group's members")
    text = (
        f"Attributes that are more common among {those} than among {rest}; strongest first."
        if found
        else f"Nothing stands out: no attribute is more common among {those} than among {rest}."
    )
    body = [table(("Attribute", "Value", f"Among {those}", f"Among {rest}", "Lift"), rows)] if found else []
    return html.Section([html.H2("What is different"), html.P(text, className="summary"), *body], className="panel")
