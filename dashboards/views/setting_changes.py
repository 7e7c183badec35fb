"""Changes of settings in words: what changed, whether it helped, and the figures for it."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.absence_costs import absence_costs_figure
from dashboards.lake.lake import Row
from dashboards.text import ABSENT, amount, instant, visible
from dashboards.urlstate import State
from dashboards.views.components import Cell, panel, table
from dashboards.zone import zone
from schemas import written
from schemas.states import AdviceStatus, GroupSetting
from schemas.written import count

HELPED = {
    AdviceStatus.VERIFIED: "yes: absences cost less",
    AdviceStatus.REFUTED: "no: absences cost more",
    AdviceStatus.TRIED: "too early to say",
}
ENOUGH = 3
"""Absences that a verdict needs on each side (`pipelines.gold.advice.absence_costs`)."""

WORDS = {
    GroupSetting.GROUP_PROTOCOL: "protocol",
    GroupSetting.ASSIGNOR: "assignor",
    GroupSetting.REBALANCE_MODE: "rebalances",
    GroupSetting.STATIC_MEMBERSHIP: "static membership",
    GroupSetting.SESSION_TIMEOUT: "session timeout",
    GroupSetting.REBALANCE_TIMEOUT: "rebalance timeout",
    GroupSetting.CLIENT_LIBRARY: "client library",
}
FIRST = 3
"""Changes that are listed at once. The others are folded, so that advice follows soon on a narrow screen."""

HEAD = (
    "Changed at", "Group", "Setting", "Did it help?", "Absence before", "Absence since", "Saved, measured", "90 %",
    "Saved, predicted", "Interval",
)  # fmt: skip


def what_changed(change: Row) -> str:
    """Return the settings with their values: `static membership: no → yes; session timeout: 6,000 → 30,000 ms`."""
    return "; ".join(
        f"{WORDS.get(each['setting'], visible(each['setting'], 40))}: {_values(each)}" for each in change["settings"]
    )


def _values(each: Row) -> str:
    if each["setting"] in (GroupSetting.SESSION_TIMEOUT, GroupSetting.REBALANCE_TIMEOUT):
        return f"{int(each['before']):,} → {int(each['after']):,} ms"
    return f"{visible(each['before'], 60)} → {visible(each['after'], 60)}"


def outcome(change: Row) -> str:
    """Return whether a change helped, with the figures, in sentences."""
    before, after = change["absences_before"], change["absences_after"]
    verdict = written.capitalized(HELPED[change["status"]])
    if change["saving_measured"] is None:
        return (
            f"{verdict}: {count(before, 'absence')} ended before the change and {after:,} since; a verdict needs "
            f"{ENOUGH} on each side."
        )
    limits = written.signed_between(change["saving_measured_low"], change["saving_measured_high"])
    text = (
        f"{verdict}. {count(after, 'absence')} since cost {_each(change, 'after')} resource-seconds each, instead of "
        f"{_each(change, 'before')} each for the {before:,} before. Saved: "
        f"{written.signed(change['saving_measured'])} (90 %: {limits}), measured."
    )
    if change["status"] == AdviceStatus.TRIED:
        text += " Chance alone may explain that."
    if change["saving_predicted"] is not None:
        low, high = change["saving_predicted_low"], change["saving_predicted_high"]
        text += (
            f" Replays of the history before the change predict {written.signed(change['saving_predicted'])} "
            f"({written.signed_between(low, high)})."
        )
    return text


def _each(change: Row, side: str) -> str:
    number = change[f"absences_{side}"]
    return amount(change[f"lost_{side}"] / number) if number else ABSENT


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


def _cells(change: Row, state: State) -> list[Cell]:
    measured, predicted = change["saving_measured"], change["saving_predicted"]
    return [
        f"{instant(change['changed_at'])[:19]}",
        dcc.Link(visible(change["group_id"], 60), href=state.href("advice", q=change["group_id"])),
        what_changed(change),
        HELPED[change["status"]],
        f"{_each(change, 'before')} ({change['absences_before']:,} times)",
        f"{_each(change, 'after')} ({change['absences_after']:,} times)",
        ABSENT if measured is None else written.signed(measured),
        ABSENT
        if measured is None
        else written.signed_between(change["saving_measured_low"], change["saving_measured_high"]),
        ABSENT if predicted is None else written.signed(predicted),
        ABSENT
        if predicted is None
        else written.signed_between(change["saving_predicted_low"], change["saving_predicted_high"]),
    ]


def _drawn(number: int, change: Row) -> Component:
    title = f"{visible(change['group_id'], 60)}: {what_changed(change)}"
    text = f"{instant(change['changed_at'])[:19]} {zone()}. {outcome(change)}"
    if change["saving_predicted"] is not None:
        text += " The diamond is the predicted cost of an absence."
    rows = [(instant(c["stopped_ms"]), amount(c["lost_resource_seconds"])) for c in change["costs"]]
    as_table = table(("Absent since (UTC)", "Lost resource-seconds"), rows)
    return panel(title, text, absence_costs_figure(change), name=f"change-{number}", table=as_table)
