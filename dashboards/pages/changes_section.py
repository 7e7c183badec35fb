"""The part of the Advice page on changes that groups made: whether each helped."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.absence_costs import absence_costs_figure
from dashboards.lake.lake import Row
from dashboards.text import ABSENT, amount, instant, visible
from dashboards.urlstate import State
from dashboards.views.components import Cell, panel, table
from dashboards.views.setting_changes import HELPED, cost_of_each, outcome, what_changed
from dashboards.zone import zone
from schemas import written
from schemas.written import count

FIRST = 3
"""Changes that are listed at once. The others are folded, so that advice follows soon on a narrow screen."""

HEAD = (
    "Changed at", "Group", "Setting", "Did it help?", "Absence before", "Absence since", "Saved, measured", "90 %",
    "Saved, predicted", "Interval",
)  # fmt: skip


def changes_section(changes: Sequence[Row], state: State, *, is_drawn: bool) -> list[Component]:
    """Return a panel with the changes, newest first, and with `is_drawn` a figure of each; nothing without changes."""
    if not changes:
        return []
    text = (
        "Each change of settings that all members of a group made: what an absence of an instance cost before and "
        "since. Predictions are replays of the history before the change."
    )
    rows = [_cells(change, state) for change in changes]
    earlier = [html.Details([html.Summary(f"{count(len(rows) - FIRST, 'earlier change')}"), table(HEAD, rows[FIRST:])])]
    listed = html.Section(
        [
            html.H2("Did it help?"),
            html.P(text, className="quiet"),
            table(HEAD, rows[:FIRST]),
            *(earlier if len(rows) > FIRST else []),
        ],
        className="panel",
    )
    return [listed, *(_drawn(number, change) for number, change in enumerate(changes) if is_drawn and change["costs"])]


def _drawn(number: int, change: Row) -> Component:
    title = f"{visible(change['group_id'], 60)}: {what_changed(change)}"
    text = f"{instant(change['changed_at'])[:19]} {zone()}. {outcome(change)}"
    if change["saving_predicted"] is not None:
        text += " The diamond is the predicted cost of an absence."
    rows = [(instant(c["stopped_ms"]), amount(c["lost_resource_seconds"])) for c in change["costs"]]
    as_table = table(("Absent since (UTC)", "Lost resource-seconds"), rows)
    return panel(title, text, absence_costs_figure(change), name=f"change-{number}", table=as_table)


def _cells(change: Row, state: State) -> list[Cell]:
    measured, predicted = change["saving_measured"], change["saving_predicted"]
    return [
        f"{instant(change['changed_at'])[:19]}",
        dcc.Link(visible(change["group_id"], 60), href=state.href("advice", q=change["group_id"])),
        what_changed(change),
        HELPED[change["status"]],
        f"{cost_of_each(change, 'before')} ({change['absences_before']:,} times)",
        f"{cost_of_each(change, 'after')} ({change['absences_after']:,} times)",
        ABSENT if measured is None else written.signed(measured),
        ABSENT
        if measured is None
        else written.signed_between(change["saving_measured_low"], change["saving_measured_high"]),
        ABSENT if predicted is None else written.signed(predicted),
        ABSENT
        if predicted is None
        else written.signed_between(change["saving_predicted_low"], change["saving_predicted_high"]),
    ]
