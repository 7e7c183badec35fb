"""What is known of one storm in words and named values, for its page and for documents."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.lake.lake import Row
from dashboards.text import ABSENT, duration, instant, visible
from dashboards.views import sentences
from dashboards.views.fact import Fact
from schemas import loss_interval
from schemas.folded_rows import count_of
from schemas.states import DiagnosisCause, StormScope
from schemas.thresholds import STORM_CALM_MS
from schemas.written import amount, count, percent

WHY_COUNTED = "Why it counts as a storm"
OVER = f"It counts as over when no unexplained rebalance came for {duration(STORM_CALM_MS)}."
HIDDEN = "It also hit groups that you may not see, so its cause and the other groups are hidden."


def title(row: Row) -> str:
    """Return `5 groups together`, or the id of the only group."""
    groups = row["group_ids"] or ()
    if row["scope"] == StormScope.GROUP and groups:
        return visible(groups[0], 80)
    return f"{count(row['groups'], 'group')} together"


def is_masked(row: Row) -> bool:
    """Return whether the storm also hit groups that the reader may not see; then most of the row is missing."""
    return row["evidence"] is None


def storm_sentence(row: Row, until: int) -> str:
    """Describe the storm in a sentence: duration, unexplained rebalances, cost and suspected cause."""
    lasted = duration(max(0, (row["ended_at"] or until) - row["started_at"]))
    over = f" {OVER}" if row["is_open"] else ""
    if is_masked(row):
        return (
            f"{'open for' if row['is_open'] else 'it lasted'} {lasted}; {count(row['groups'], 'group')}; "
            f"{loss_interval.of_row(row)} resource-seconds lost.{over} {HIDDEN}"
        )
    cause = (
        "no cause stands out"
        if row["suspected_cause"] in (None, DiagnosisCause.UNKNOWN)
        else f"suspected: {sentences.cause(row['suspected_cause'])} (score {row['score'] or 0:.2f})"
    )
    return (
        f"{'open for' if row['is_open'] else 'it lasted'} {lasted}; {count(row['groups'], 'group')}, "
        f"{count(row['rebalances'], 'rebalance')}, {row['unexplained_rebalances']:,} of them beyond what deploys, "
        f"scaling and follow-ups explain; {loss_interval.of_row(row)} resource-seconds lost; {cause}.{over}"
    )


def cause_facts(row: Row) -> list[Fact]:
    """Return the suspected cause with its score, and why the rebalances count as a storm."""
    return [
        Fact("Suspected cause", sentences.cause(row["suspected_cause"]), row["evidence"]),
        Fact("Score", f"{row['score'] or 0:.2f}: its share of {_scored(row)}, by their diagnoses"),
        Fact(WHY_COUNTED, visible(row["explanation"], 2_000)),
    ]


def _scored(row: Row) -> str:
    return (
        "the unexplained rebalances"
        if row["scope"] == StormScope.GROUP
        else "the groups, by each group's cause at its start"
    )


def cost_facts(row: Row, until: int) -> list[Fact]:
    """Return what the storm cost, and when it began, was detected and ended; `until` is the newest known time."""
    ended = f"still open at {instant(until)[:19]}" if row["ended_at"] is None else instant(row["ended_at"])
    later = duration(row["detected_at"] - row["started_at"])
    return [
        Fact("Resource-seconds lost", loss_interval.of_row(row) if row["lost_resource_seconds_max"] else "none"),
        Fact("Rebalances", ABSENT if is_masked(row) else _rebalances(row)),
        Fact("Began (UTC)", instant(row["started_at"])),
        Fact("Detected (UTC)", f"{instant(row['detected_at'])}, {later} later"),
        Fact("Ended (UTC)", ended),
    ]


def _rebalances(row: Row) -> str:
    return f"{row['rebalances']:,}, {row['unexplained_rebalances']:,} of them unexplained"


def differences_sentence(row: Row) -> str:
    """Return what the table of `difference_cells` compares, or that nothing stands out."""
    those, rest = _compared(row)
    if row["differences"]:
        return f"Attributes that are more common among {those} than among {rest}; strongest first."
    return f"Nothing stands out: no attribute is more common among {those} than among {rest}."


def difference_head(row: Row) -> tuple[str, ...]:
    """Return the head of the table of `difference_cells`."""
    those, rest = _compared(row)
    return ("Attribute", "Value", f"Among {those}", f"Among {rest}", "Lift")


def difference_cells(row: Row) -> list[tuple[str, ...]]:
    """Return the cells of each attribute that the affected groups or members share, strongest first."""
    return [
        (
            visible(d["attribute"], 60).replace("_", " "),
            visible(d["value"], 120),
            percent(d["share"]),
            percent(d["baseline"]),
            "nowhere else" if not d["baseline"] else f"{d['lift']:,.1f} times",
        )
        for d in row["differences"] or ()
    ]


def _compared(row: Row) -> tuple[str, str]:
    if row["scope"] == StormScope.FLEET:
        return "groups hit", "other groups"
    return "members that caused it", "the group's members"


CAUSES_HEAD = ("Cause", "Rebalances", "Groups")


def causes_sentence(row: Row) -> str:
    """Return what the rows of `cause_cells` count."""
    text = "Each unexplained rebalance has the cause shown on its group's page."
    return f"{text} Of many groups, the hardest hit are diagnosed." if row["scope"] == StormScope.FLEET else text


def cause_cells(row: Row) -> list[tuple[str, ...]]:
    """Return the cells of each cause of the storm's unexplained rebalances; none if they are unknown or hidden."""
    return [
        (sentences.cause(each["cause"]), f"{each['rebalances']:,}", f"{each['groups']:,}")
        for each in row["causes"] or ()
    ]


def hits(row: Row, made: Sequence[Row]) -> list[Row]:
    """Return the loss of each group from the storm's row, hardest hit first.

    If the row has none, or the reader may not see all groups, the loss is computed from the groups' generations.
    """
    if row["by_group"] is not None:
        return [dict(each) for each in row["by_group"]]
    end = row["ended_at"]
    inside = [g for g in made if row["started_at"] <= g["joined_at"] and (end is None or g["joined_at"] <= end)]
    found = []
    for group in row["group_ids"] or ():
        mine = [g for g in inside if g["group_id"] == group]
        lost, low, high = loss_interval.summed((g["lost"], g["lost_low"], g["lost_high"]) for g in mine)
        found.append(
            {
                "group_id": group,
                "rebalances": count_of(mine),
                "lost_resource_seconds": lost,
                "lost_resource_seconds_low": low,
                "lost_resource_seconds_high": high,
            }
        )
    return sorted(found, key=lambda hit: (-hit["lost_resource_seconds"], -hit["rebalances"], hit["group_id"]))


def hit_figures(found: Sequence[Row]) -> tuple[str, str]:
    """Return the rebalances and the loss of these groups as text."""
    rebalances = f"{sum(hit['rebalances'] for hit in found):,}"
    if any(hit.get("lost_resource_seconds_low") is None for hit in found):
        # A row of an earlier Regroup has no intervals of its groups.
        return rebalances, amount(sum(hit["lost_resource_seconds"] for hit in found))
    low, high = "lost_resource_seconds_low", "lost_resource_seconds_high"
    whole = loss_interval.summed((hit["lost_resource_seconds"], hit[low], hit[high]) for hit in found)
    return rebalances, loss_interval.written(*whole)
