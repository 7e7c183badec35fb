"""Values that are more frequent in the rebalances of a range than in those of the range before, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma
from typing import NamedTuple

from dash import html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.queries.differences import VALUE_ROWS, Attribute, Values
from dashboards.text import host, visible
from dashboards.views import sentences
from dashboards.views.components import table_panel
from schemas.written import count, percent

SIGNIFICANCE = 0.01
"""Probability that chance alone puts any value on the list, after correction for the number of values tested."""

LEAST_LIFT = 1.5
MOST = 12
NEGLIGIBLE = 1e-12
WORDS = {
    Attribute.CAUSE: "cause",
    Attribute.CLUSTER: "cluster",
    Attribute.GROUP: "group",
    Attribute.INSTANCE: "instance",
    Attribute.HOST: "host",
    Attribute.LIBRARY: "client library",
    Attribute.SOFTWARE: "client software",
    Attribute.COORDINATOR: "coordinator",
}


class Differing(NamedTuple):
    """A value with the numbers of rebalances that have it, and their shares of all rebalances of each range."""

    attribute: Attribute
    value: str
    here: int
    before: int
    share_here: float
    share_before: float


def differing(rows: Sequence[Row]) -> list[Differing]:
    """Return the values that are more frequent here than chance explains, the least likely first.

    `rows` are those of `Values`. Method: Fisher's exact test, one-sided, with Bonferroni's correction. Without
    rebalances in both ranges, nothing can be compared.
    """
    here, before = totals(rows)
    values = [row for row in rows if row["attribute"] != Attribute.ALL and row["value"] is not None]
    if not here or not before:
        return []
    found = []
    for row in values:
        share_here, share_before = row["here"] / here, row["before"] / before
        if share_here < LEAST_LIFT * share_before or not row["here"]:
            continue
        probability = _at_least(row["here"], here, row["here"] + row["before"], here + before) * len(values)
        if probability <= SIGNIFICANCE:
            one = Differing(
                Attribute(row["attribute"]), row["value"], row["here"], row["before"], share_here, share_before
            )
            found.append((probability, one))
    return [one for _, one in sorted(found, key=lambda pair: (pair[0], -pair[1].share_here, pair[1]))][:MOST]


def totals(rows: Sequence[Row]) -> tuple[int, int]:
    """Return the numbers of rebalances of both ranges."""
    return next(((row["here"], row["before"]) for row in rows if row["attribute"] == Attribute.ALL), (0, 0))


def _at_least(found: int, drawn: int, having: int, total: int) -> float:
    """Return the probability that of `drawn` out of `total`, at least `found` are among the `having` ones."""
    term = exp(_log_choose(having, found) + _log_choose(total - having, drawn - found) - _log_choose(total, drawn))
    whole = 0.0
    for number in range(found, min(having, drawn) + 1):
        whole += term
        rest = (number + 1) * (total - having - drawn + number + 1)
        term = term * (having - number) * (drawn - number) / rest if rest else 0.0
        if term < NEGLIGIBLE * whole:
            break
    return min(1.0, whole)


def _log_choose(of: int, chosen: int) -> float:
    if not 0 <= chosen <= of:
        return float("-inf")
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)


def differing_panel(values: Values | None) -> Component:
    """Return the panel of what differs, or why nothing can be compared; None if there is no range before."""
    if values is None:
        text = "The range of the same length before this one was not recorded as a whole, so nothing is compared."
        return _section(text)
    here, before = totals(values.rows)
    if not here or not before:
        return _section(f"{_both(here, before)}, so there is nothing to compare.")
    text = (
        f"{_both(here, before)}. A value is listed if its share here is at least {LEAST_LIFT} times its share before, "
        f"and chance explains that with a probability of at most {percent(SIGNIFICANCE)} (Fisher's exact test, "
        "corrected for the number of values). Drag over the figure to choose another range."
    )
    if values.is_capped:
        text += f" Only the {VALUE_ROWS:,} most frequent values were compared."
    if not values.has_members:
        text += " Client libraries, their versions and coordinators could not be compared."
    return table_panel(
        "What is different here",
        text,
        ("What", "Value", "Rebalances here", "Of all here", "Before", "Of all before"),
        [
            [
                WORDS[each.attribute],
                _value(each),
                each.here,
                percent(each.share_here),
                each.before,
                percent(each.share_before),
            ]
            for each in differing(values.rows)
        ],
        nothing="Nothing: chance explains every difference from the range before.",
    )


def _both(here: int, before: int) -> str:
    return f"{count(here, 'rebalance')} with a verdict here, {before:,} in the range of the same length before"


def _section(text: str) -> Component:
    return html.Section([html.H2("What is different here"), html.P(text, className="summary")], className="panel")


def _value(one: Differing) -> str:
    if one.attribute is Attribute.HOST:
        return host(one.value, 80)
    if one.attribute is Attribute.CAUSE:
        return sentences.cause(one.value)
    if one.attribute is Attribute.COORDINATOR:
        return f"broker {one.value}"
    return visible(one.value, 80)
