"""One storm: its groups over time, its cost, the suspected cause, and what the groups hit have in common."""

from __future__ import annotations

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.flags import flagged
from dashboards.figures.storms import GROUPS_SHOWN, key, storm_figure
from dashboards.lake.lake import Row, Rows
from dashboards.queries.store import Store
from dashboards.text import instant, visible
from dashboards.urlstate import State, Window
from dashboards.views import sentences
from dashboards.views.components import (
    Cell,
    aria,
    document_link,
    empty,
    evidence_mark,
    facts,
    graded,
    legend,
    marks_table,
    panel,
    table,
)
from dashboards.views.marks import NEAR_MS, time_since_mark
from dashboards.views.ranges import drawn, part
from dashboards.views.storm_hits import causes_panel, groups_panel, rebalance_href
from dashboards.views.storm_words import (
    HIDDEN,
    cause_facts,
    cost_facts,
    difference_cells,
    difference_head,
    differences_sentence,
    is_masked,
    storm_sentence,
    title,
)
from dashboards.views.verdicts import storm_panel, storm_verdict
from schemas import loss_interval
from schemas.written import capitalized

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
    if whole is None:
        return html.Div([named], className="head")
    link = document_link(state, "Incident document", storm=state.storm)
    steps = html.Nav([link], className="steps", **aria("incident document"))
    return html.Div([named, steps, part(state, whole)], className="head")


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
    return html.Section([html.H2("Cause"), facts(graded(cause_facts(row)))], className="panel")


def _cost(row: Row, until: int) -> Component:
    return html.Section([html.H2("Cost"), facts(graded(cost_facts(row, until)))], className="panel")


def _differences(row: Row) -> Component:
    if is_masked(row):
        return html.Section([html.H2("What is different"), html.P(HIDDEN, className="summary")], className="panel")
    rows = difference_cells(row)
    body = [table(difference_head(row), rows)] if rows else []
    text = html.P(differences_sentence(row), className="summary")
    return html.Section([html.H2("What is different"), text, *body], className="panel")
