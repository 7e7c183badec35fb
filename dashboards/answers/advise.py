"""What a group should change: its newest advice with the saving, the conditions and the text to paste."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dashboards.answers.group_advice import advice_of, recommended
from dashboards.answers.why import NoAnswerError, group_of
from dashboards.answers.written import at, wrapped
from dashboards.lake.lake import Lake, Row
from dashboards.queries.store import Store
from dashboards.text import instant, span, visible
from dashboards.urlstate import Window
from dashboards.views import sentences
from dashboards.views.setting_changes import outcome, what_changed
from dashboards.zone import zone
from schemas import written
from schemas.states import ClientLibrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """The rows of a group's newest advice, the best first, and the client libraries that its members use.

    `changes` are its changes of settings, with what each saved, the newest first.
    """

    group: Row
    rows: list[Row]
    libraries: list[str]
    changes: list[Row]


def advise(lake: Lake, group: str, *, cluster: str = "") -> Advised:
    """Return the newest advice for a group. `cluster` may be empty if only one cluster has the group.

    Raises:
        NoAnswerError: there is no such group, several clusters have it, or it is not analyzed yet.
        LakeError: the tables cannot be read.
    """
    store = Store(lake)
    row = group_of(store, group, cluster)
    found = advised(store, row)
    if found is None:
        raise NoAnswerError(f"The group {visible(group, 120)} is not analyzed yet: run `regroup analyze`.")
    return found


def advised(store: Store, group: Row) -> Advised | None:
    """Return the newest advice for a row of `groups`; None if the group is not analyzed yet."""
    rows = advice_of(store, group["cluster"], group["group_id"])
    if not rows:
        return None
    view = Window(rows[0]["window_start_at"], rows[0]["window_end_at"] + 1, is_live=False)
    found = [each["client_library"] for each in store.libraries(group["cluster"], group["group_id"], view)]
    known = [name for name in dict.fromkeys(found) if name not in (None, ClientLibrary.UNKNOWN)]
    changes = store.setting_changes(cluster=group["cluster"], group=group["group_id"]).rows
    return Advised(group=group, rows=rows, libraries=known, changes=changes)


def advise_text(found: Advised) -> str:
    """Return the advice as lines of text: each recommended change, or why none is."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Advised) -> Iterator[str]:
    first = found.rows[0]
    window = f"{span(instant(first['window_start_at'])[:19], instant(first['window_end_at'])[:19])} {zone()}"
    yield f"{visible(found.group['group_id'], 120)} in {visible(found.group['cluster'], 60)}, {window}"
    yield ""
    changes = recommended(found.rows)
    if not changes:
        yield "No change is recommended."
        yield wrapped(visible(first["explanation"], 2_000))
    for number, row in enumerate(changes, 1):
        yield f"{number}. {written.capitalized(sentences.action(row['action']))}{saving_text(row)}"
        yield wrapped(visible(row["explanation"], 2_000), "   ", "   ")
        for text in row["preconditions"] or ():
            yield wrapped(visible(text, 300), "   - ", "     ")
        for place, text in settings_of(found, row).items():
            yield f"   {place}:"
            yield from (f"       {visible(line, 400)}" for line in text.splitlines())
        yield ""
    if found.changes:
        yield "Did earlier changes help?"
    for change in found.changes:
        yield f"{instant(change['changed_at'])[:19]} {zone()}: {what_changed(change)}"
        yield wrapped(outcome(change), "   ", "   ")


def saving_text(row: Row) -> str:
    """Return `: +12.0 (+9.0 to +15.0) resource-seconds, modelled`; empty if the saving is not known."""
    if row["saving_measured"] is not None:
        return f": {written.signed(row['saving_measured'])} resource-seconds, measured"
    if row["saving"] is None:
        return ""
    low, high = row.get("saving_low"), row.get("saving_high")
    between = "" if low is None or high is None else f" ({written.signed_between(low, high)})"
    return f": {written.signed(row['saving'])}{between} resource-seconds, modelled"


def settings_of(found: Advised, row: Row) -> dict[str, str]:
    """Return the text to paste for the group's client libraries; for all places if none of them has its own."""
    settings: dict[str, str] = dict(row["settings"] or ())
    mine = {place: text for place, text in settings.items() if place in found.libraries}
    return mine or settings


def advise_values(found: Advised) -> dict[str, Any]:
    """Return the advice as values of JSON: all evaluated changes, the best first, with times in ISO 8601 (UTC)."""
    first = found.rows[0]
    return {
        "cluster": found.group["cluster"],
        "group_id": found.group["group_id"],
        "from": at(first["window_start_at"]),
        "to": at(first["window_end_at"]),
        "client_libraries": found.libraries,
        "changes": [
            {name: row.get(name) for name in COLUMNS} | {"settings": dict(row["settings"] or ())} for row in found.rows
        ],
        "setting_changes": [
            {name: change[name] for name in CHANGE_COLUMNS}
            | {name: at(change[name]) for name in ("changed_at", "rollout_at")}
            for change in found.changes
        ],
    }


COLUMNS = (
    "action", "is_recommended", "status", "lost_now", "lost_predicted", "lost_predicted_low", "lost_predicted_high",
    "saving", "saving_low", "saving_high", "saving_measured", "rebalances_now", "rebalances_predicted", "preconditions",
    "explanation",
)  # fmt: skip
"""Columns of `advice` in the answer."""

CHANGE_COLUMNS = (
    "settings", "evidence", "status", "absences_before", "absences_after", "lost_before", "lost_after",
    "rebalances_before", "rebalances_after", "saving_measured", "saving_measured_low", "saving_measured_high",
    "saving_predicted", "saving_predicted_low", "saving_predicted_high",
)  # fmt: skip
"""Columns of `setting_changes` in the answer."""
