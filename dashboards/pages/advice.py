"""Advice: which groups should change which settings, the saving, and the text to paste."""

from __future__ import annotations

from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.pages.changes_section import changes_section
from dashboards.queries.gold_store import ADVICE_GROUPS
from dashboards.queries.store import Store
from dashboards.text import ABSENT, amount, instant, span, visible
from dashboards.urlstate import State
from dashboards.views.components import Cell, aria, empty, paging_links, table
from dashboards.views.diagnoses import diagnosis_section
from dashboards.views.sentences import action
from dashboards.zone import zone
from schemas import written
from schemas.states import AdviceAction, AdviceStatus
from schemas.written import count

WHOLE = 3
"""For up to this many groups, the page has the settings of all proposals. For more groups it would be too long."""

DETAILS = "Why it rebalances, and what other settings would do"
HEAD = (
    "Action", "Lost, modelled", "Interval", "Saving, modelled", "Interval", "Rebalances", "Recommended", "Status",
)  # fmt: skip


def render(store: Store, state: State, now: int) -> list[Component]:
    found = store.advice(state.q, state.skip)
    if state.skip and not found.rows:
        return render(store, replace(state, skip=0), now)
    head = html.Div([html.H1("Advice")], className="head")
    changes = store.setting_changes(state.q).rows
    if not found.rows:
        return [head, *changes_section(changes, state, is_drawn=True), _none(store)]
    groups = _by_group(found.rows)
    causes = _by_group(store.diagnoses(state.q, [group for _, group in groups]).rows)
    known, advised = found.rows[0]["total"], found.rows[0]["advised"]
    text = (
        f"{count(advised, 'group')} of {known:,} should change something. The loss of each group is measured. Its own "
        "churn is then replayed with the present and with other settings; a saving is the difference of two replays, "
        "so it is modelled. Resource-seconds are the total time in which partitions or tasks were not processed. "
        "Settings of a group, broker or client that were never observed are assumed to be Kafka's defaults, and marked."
    )
    shown = f" Largest saving first: {span(f'{state.skip + 1:,}', f'{state.skip + len(groups):,}')}."
    return [
        head,
        html.P(text + (shown if len(groups) < known else ""), className="summary"),
        *changes_section(changes, state, is_drawn=len({(c["cluster"], c["group_id"]) for c in changes}) <= WHOLE),
        *(_group(state, rows, causes.get(key, []), is_whole=len(groups) <= WHOLE) for key, rows in groups.items()),
        paging_links(state, "advice", len(groups), ADVICE_GROUPS, known),
    ]


def _none(store: Store) -> Component:
    if "advice" not in store.versions():
        return empty("missing", "Nothing here yet", "No analysis has run yet (“regroup analyze”, or “up”).")
    return empty("nothing", "No advice", "No group had members that stopped and started.")


def _by_group(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    out: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        out.setdefault((row["cluster"], row["group_id"]), []).append(row)
    return out


def _group(state: State, rows: list[Row], causes: list[Row], *, is_whole: bool) -> Component:
    first = rows[0]
    explained = [
        row for row in rows if (is_whole or row["is_recommended"]) and (row["settings"] or row["preconditions"])
    ]
    more = dcc.Link("How to apply each of them", href=state.href("advice", q=first["group_id"]))
    title = dcc.Link(
        visible(first["group_id"], 80), href=state.href("group", cluster=first["cluster"], group=first["group_id"])
    )
    window = f"{span(instant(first['window_start_at'])[:19], instant(first['window_end_at'])[:19])} {zone()}"
    details = [
        *([html.H3("Why it rebalances"), *diagnosis_section(causes)] if causes else []),
        html.H3("What other settings would do"),
        table(HEAD, [_cells(row) for row in rows]),
        *map(_details, explained),
    ]
    return html.Section(
        [
            html.H2([title, f": {action(first['action'])}"]),
            html.P(visible(first["explanation"], 2_000), className="summary"),
            html.P(f"{visible(first['cluster'], 40)}, {window}: {_lost_now(first)}.", className="quiet"),
            *(details if is_whole else [html.Details([html.Summary(DETAILS), *details, html.P(more)])]),
        ],
        className="panel",
    )


def _lost_now(row: Row) -> str:
    if not row["rebalances_now"]:
        return "no rebalance"
    lost = f"{amount(row['lost_now'])} resource-seconds lost in {count(row['rebalances_now'], 'rebalance')}"
    replayed = row.get("lost_replayed")  # NULL or absent in rows of an earlier Regroup
    if replayed is None:
        return lost
    return f"{lost}, as measured; {amount(replayed)} when replayed with the present settings"


def _saving(saved: float, ratio: float | None) -> str:
    if abs(saved) < written.NOTHING:
        return amount(0)
    if ratio is None:
        return written.signed(saved)
    sign = "+" if ratio >= 0 else ""
    return f"{written.signed(saved)} ({sign}{written.percent(ratio)})"


def _cells(row: Row) -> list[Cell]:
    is_replayed = row["lost_predicted"] is not None
    after = ABSENT if row["rebalances_predicted"] is None else f"{row['rebalances_predicted']:,}"
    return [
        action(row["action"]),
        amount(row["lost_predicted"]) if is_replayed else ABSENT,
        written.between(row["lost_predicted_low"], row["lost_predicted_high"]) if is_replayed else ABSENT,
        *_savings(row),
        f"{row['rebalances_now']:,} → {after}",
        "yes" if row["is_recommended"] else ABSENT,
        _status(row),
    ]


def _savings(row: Row) -> tuple[str, str]:
    """Return the saving and its interval; a change in force has a measured saving, and none has no saving."""
    if row["saving_measured"] is not None:
        return f"{_saving(row['saving_measured'], None)}, measured", ABSENT
    low, high = row.get("saving_low"), row.get("saving_high")
    if row["action"] == AdviceAction.NONE or row["saving"] is None or row["lost_predicted"] is None:
        return ABSENT, ABSENT
    interval = ABSENT if low is None or high is None else written.signed_between(low, high)
    return _saving(row["saving"], row["saving_ratio"]), interval


def _status(row: Row) -> str:
    """Return the status; a dash for an action that was only evaluated."""
    if row["status"] == AdviceStatus.SUGGESTED:
        return row["status"] if row["is_recommended"] else ABSENT
    return f"{row['status']}: {visible(row['explanation'], 200)}"


def _details(row: Row) -> Component:
    return html.Details(
        [
            html.Summary(f"How: {action(row['action'])}"),
            html.P(visible(row["explanation"], 2_000), className="quiet"),
            html.Ul([html.Li(visible(text, 300)) for text in row["preconditions"] or ()]),
            *(_paste(setting, text) for setting, text in dict(row["settings"] or ()).items()),
        ]
    )


def _paste(setting: str, text: str) -> Component:
    copy = html.Button("Copy", className="button copy", type="button", **aria(f"Copy the settings for {setting}"))
    return html.Div([html.P([setting, copy], className="quiet"), html.Pre(html.Code(text))], className="paste")
