"""Deploys in words: cost against the deploys before, time to stable, who did not come back, and who was slow."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.lake.lake import Row
from dashboards.text import ABSENT, duration, host, instant, visible
from dashboards.zone import zone
from schemas import loss_interval
from schemas.states import Evidence
from schemas.thresholds import HOUR_MS, MARK_MS
from schemas.written import NOTHING, amount, count

NAMED = 3
"""The highest number of members that are named."""

NO_MARK = "no mark"


def title(row: Row, limit: int = 60) -> str:
    """Return the text of the mark, or that there is none."""
    return NO_MARK if row["text"] is None else visible(row["text"], limit)


def cost(row: Row) -> str:
    """Return the loss with its 90 % interval, in resource-seconds."""
    return loss_interval.of_row(row)


def against_before(row: Row) -> str:
    """Return the cost as a multiple of the median of the group's deploys before this one."""
    if not row["deploys_before"]:
        return "first known deploy"
    of = f"the median of {row['deploys_before']:,} before" if row["deploys_before"] > 1 else "the one before"
    if (row["median_before"] or 0) < NOTHING:
        return f"{of} lost {amount(row['median_before'] or 0)}"
    return f"{row['lost_resource_seconds'] / row['median_before']:,.1f} times {of}"


def stable(row: Row, newest: int) -> str:
    """Return the time to stable. `newest` is the time of the cluster's newest record."""
    if row["stable_ms"] is not None:
        return duration(row["stable_ms"])
    if row["rebalances"] or row["restarted"] or row["not_back"]:
        return f"not yet, {duration(max(0, newest - row['started_at']))} after its start"
    return ABSENT


def followed(row: Row, newest: int) -> str:
    """Return the number of rebalances, or that none followed the mark."""
    if row["rebalances"]:
        return count(row["rebalances"], "rebalance")
    if newest < row["started_at"] + MARK_MS:
        return "no rebalance followed so far"
    return f"no rebalance followed within {duration(MARK_MS)}"


def restarted(row: Row) -> str:
    """Return the number of members that restarted, and the first of their names."""
    return _named(row["restarted"]) if len(row["restarted"]) else "none"


def not_back(row: Row, newest: int) -> str:
    """Return the members that did not come back, with their hosts.

    `so far`: they may still be back within the hour after the deploy (`newest`: the cluster's newest record).
    """
    names = [
        name if host(where, 60) in name or not where else f"{name} ({host(where, 60)})"
        for name, where in zip(row["not_back"], row["not_back_hosts"], strict=False)
    ]
    if not names:
        return "all came back" if len(row["restarted"]) else "none left"
    is_early = newest < (row["ended_at"] or row["started_at"]) + HOUR_MS
    return f"{'so far ' if is_early else ''}{_named(names)}"


def slowest(row: Row) -> str:
    """Return the member for which the others waited longest, with its host."""
    if row["slowest"] is None:
        return "not recorded"
    name, where = visible(row["slowest"], 60), host(row["slowest_host"], 60)
    shown = name if not row["slowest_host"] or where in name else f"{name} ({where})"
    return f"{shown}: {duration(row['slowest_waited_ms'])}"


def members(row: Row) -> str:
    """Return the number of members before and after."""
    before, after = (ABSENT if n is None else f"{n:,}" for n in (row["members_before"], row["members_after"]))
    return f"{before} → {after}"


def known_by(row: Row) -> str:
    """Return how the deploy is known."""
    return "announced by a mark" if row["evidence"] == Evidence.OBSERVED else "recognized by its rebalances"


def pairs(row: Row, newest: int) -> list[tuple[str, str]]:
    """Return the facts of one deploy by name, for two of them side by side."""
    return [
        ("Mark", title(row)),
        ("Began (UTC)", instant(row["started_at"])[:19]),
        ("Known", known_by(row)),
        ("Lost resource-seconds", cost(row)),
        ("Against the deploys before", against_before(row)),
        ("Stable after", stable(row, newest)),
        ("Rebalances", followed(row, newest)),
        ("Members", members(row)),
        ("Restarted", restarted(row)),
        ("Did not come back", not_back(row, newest)),
        ("Others waited longest for", slowest(row)),
    ]


def comparison(row: Row, other: Row) -> str:
    """Return sentences that compare the cost and the time to stable of a deploy with those of an earlier one."""
    this, that = f"“{title(row)}”" if row["text"] else "This deploy", _earlier(other)
    return f"{this} {_cost(row, other)} {that}. {_certainty(row, other)}{_time(row, other)}"


def _earlier(other: Row) -> str:
    at = f"{instant(other['started_at'])[:19]} {zone()}"
    return f"“{title(other)}” of {at}" if other["text"] else f"the deploy of {at}"


def _cost(row: Row, other: Row) -> str:
    now, then = row["lost_resource_seconds"], other["lost_resource_seconds"]
    if now < NOTHING and then < NOTHING:
        return "cost nothing, like"
    if then < NOTHING:
        return f"lost {amount(now)} resource-seconds, and nothing was lost in"
    ratio = now / then
    if 0.95 <= ratio < 1.05:
        return "cost about as much as"
    return f"cost {ratio:,.1f} times as much as" if ratio > 1 else f"cost {1 - ratio:.0%} less than".replace("%", " %")


def _certainty(row: Row, other: Row) -> str:
    """Return whether the intervals of the two costs overlap."""
    low, high = "lost_resource_seconds_low", "lost_resource_seconds_high"
    if row["lost_resource_seconds"] < NOTHING and other["lost_resource_seconds"] < NOTHING:
        return ""
    if row[low] <= other[high] and other[low] <= row[high]:
        return "The 90 % intervals overlap, so which of them cost more is not certain. "
    return "The 90 % intervals do not overlap. "


def _time(row: Row, other: Row) -> str:
    if row["stable_ms"] is None or other["stable_ms"] is None:
        return ""
    return f"The group was stable after {duration(row['stable_ms'])}; it was {duration(other['stable_ms'])} then."


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(visible(name, 60) for name in list(names)[:NAMED])
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{len(names):,}: {shown}{more}"
