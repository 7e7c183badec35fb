"""Changes of settings in words: what changed, and whether it helped."""

from __future__ import annotations

from dashboards.lake.lake import Row
from dashboards.text import ABSENT, amount, visible
from schemas import written
from schemas.states import AdviceStatus, GroupSetting
from schemas.thresholds import ENOUGH_ABSENCES
from schemas.written import count

HELPED = {
    AdviceStatus.VERIFIED: "yes: absences cost less",
    AdviceStatus.REFUTED: "no: absences cost more",
    AdviceStatus.TRIED: "too early to say",
}
WORDS = {
    GroupSetting.GROUP_PROTOCOL: "protocol",
    GroupSetting.ASSIGNOR: "assignor",
    GroupSetting.REBALANCE_MODE: "rebalances",
    GroupSetting.STATIC_MEMBERSHIP: "static membership",
    GroupSetting.SESSION_TIMEOUT: "session timeout",
    GroupSetting.REBALANCE_TIMEOUT: "rebalance timeout",
    GroupSetting.CLIENT_LIBRARY: "client library",
}


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
            f"{ENOUGH_ABSENCES} on each side."
        )
    limits = written.signed_between(change["saving_measured_low"], change["saving_measured_high"])
    mean_before, mean_after = cost_of_each(change, "before"), cost_of_each(change, "after")
    text = (
        f"{verdict}. {count(after, 'absence')} since cost {mean_after} resource-seconds each, instead of {mean_before} "
        f"each for the {before:,} before. Saved: "
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


def cost_of_each(change: Row, side: str) -> str:
    """Return the mean cost of the absences on a side, `before` or `after`, or a dash if there is none."""
    number = change[f"absences_{side}"]
    return amount(change[f"lost_{side}"] / number) if number else ABSENT
