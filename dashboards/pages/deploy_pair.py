"""Two deploys of a group side by side: the one in the address, and an earlier one."""

from __future__ import annotations

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.deploys import Steps, deploys_figure, steps
from dashboards.lake.lake import Row
from dashboards.queries.deploy_store import DeployStore
from dashboards.queries.store import KnownSpan, Store
from dashboards.text import duration, instant, visible
from dashboards.urlstate import State, Window
from dashboards.views import deploy_words as words
from dashboards.views.components import Cell, empty, panel, table
from schemas.thresholds import HOUR_MS, MINUTE_MS
from schemas.written import count

OTHERS = 50
ROWS_SHOWN = 200


def render(store: Store, state: State, group: str, seen: KnownSpan) -> list[Component] | None:
    """Return the page of the deploy in the address; None if there is no such deploy.

    It is compared with the one in `against`, or else with the one before.
    """
    asked = DeployStore(store.lake)
    row = None if state.deploy is None else asked.deploy(state.cluster, group, state.deploy)
    if row is None:
        return None
    newest = seen.until.get(row["cluster"], seen.last_at)
    chosen = state.against if state.against is not None else row["before_at"]
    other = None if chosen is None else asked.deploy(state.cluster, group, chosen)
    notices = []
    if other is None and state.against is not None:
        notices = [html.P("There is no such deploy to compare with.", className="notice", role="alert")]
    rows = asked.of_group(state.cluster, group, rows=OTHERS).rows
    return [
        html.Div([html.H1(f"Deploy of {visible(group, 80)}"), _back(state, row)], className="head"),
        *notices,
        _comparison(row, other),
        _facts(state, row, other, newest),
        _figure(asked, row, other, newest),
        html.Section(
            [
                html.H2("Compare with another"),
                table(
                    ("Began (UTC)", "Mark", "Lost resource-seconds", "Stable after", "Compare"),
                    [_choice(state, row, each, other, newest) for each in rows if each != row],
                    empty="No other deploy of this group is known.",
                ),
            ],
            className="panel",
        ),
    ]


def group_then(state: State, row: Row, newest: int) -> str:
    """Return the address of the group's page at the time of a deploy."""
    first, last = row["started_at"], _end(row, newest)
    margin = max(MINUTE_MS, (last - first) // 4)
    span = {"from_": first - margin, "to": last + margin}
    return state.href("group", cluster=row["cluster"], group=row["group_id"], **span)


def _end(row: Row, newest: int) -> int:
    """Return the end of a deploy; of one that is not stable, the newest record, an hour after its start at most."""
    known = row["stable_at"] or min(newest, row["started_at"] + HOUR_MS)
    return int(max(known, row["ended_at"] or 0, row["started_at"] + 1_000))


def _back(state: State, row: Row) -> Component:
    mine = state.href("deploys", cluster=row["cluster"], group=row["group_id"])
    return html.Nav(
        [dcc.Link("All deploys of this group", href=mine, className="button"),
         dcc.Link("All deploys", href=state.href("deploys"), className="button")],
        className="further",
    )  # fmt: skip


def _comparison(row: Row, other: Row | None) -> Component:
    if other is None:
        return html.P("It is the first known deploy of this group: there is none to compare it with.",
                      className="sentence")  # fmt: skip
    return html.P(words.comparison(row, other), className="sentence")


def _facts(state: State, row: Row, other: Row | None, newest: int) -> Component:
    shown = [row] if other is None else [row, other]
    columns = [words.pairs(each, newest) for each in shown]
    rows: list[list[Cell]] = [
        [columns[0][at][0], *(column[at][1] for column in columns)] for at in range(len(columns[0]))
    ]
    rows.append(["Group", *(dcc.Link("at that time", href=group_then(state, each, newest)) for each in shown)])
    head = ("Fact", "This deploy", "The other")[: 1 + len(shown)]
    return html.Section([html.H2("Side by side" if other else "The deploy"), table(head, rows)], className="panel")


def _figure(asked: DeployStore, row: Row, other: Row | None, newest: int) -> Component:
    shown = [("this", row)] if other is None else [("this", row), ("the other", other)]
    found = [(name, _steps(asked, each, newest)) for name, each in shown]
    most = [max(number for _, number in each) for _, each in found]
    if not any(most):
        text = "No partition or task was without an owner."
        return empty("nothing", "Without an owner", text)
    dotted = "" if other is None else f" Dotted: the other, at most {most[1]:,}."
    text = f"Partitions or tasks without an owner since the start, estimated. Solid: this deploy, at most {most[0]:,}."
    return panel("Without an owner", text + dotted, deploys_figure(found), name="deploys", table=_steps_table(found))


def _steps(asked: DeployStore, row: Row, newest: int) -> Steps:
    start, end = row["started_at"], _end(row, newest)
    stops = asked.stops(row["cluster"], row["group_id"], Window(start, end + 1, is_live=False))
    return steps(stops.rows, start, end)


def _steps_table(found: list[tuple[str, Steps]]) -> Component:
    rows = sorted((at, name, number) for name, each in found for at, number in each)
    head = ("Since the start", "Deploy", "Without an owner")
    more = [html.P(f"The first {ROWS_SHOWN} of {count(len(rows), 'step')}.", className="quiet")]
    return html.Div(
        [
            table(head, [(duration(at), name, number) for at, name, number in rows[:ROWS_SHOWN]]),
            *(more if len(rows) > ROWS_SHOWN else []),
        ]
    )


def _choice(state: State, row: Row, each: Row, other: Row | None, newest: int) -> list[Cell]:
    key = {"cluster": row["cluster"], "group": row["group_id"], "deploy": row["started_at"]}
    link = dcc.Link("with this one", href=state.href("deploys", **key, against=each["started_at"]))
    is_shown = other is not None and each["started_at"] == other["started_at"]
    return [
        instant(each["started_at"])[:19],
        words.title(each),
        words.cost(each),
        words.stable(each, newest),
        "shown above" if is_shown else link,
    ]
