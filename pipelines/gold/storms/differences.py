"""Attributes that affected groups or instances have in common and others do not, if chance does not explain it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Any

from pipelines.gold.chance import binomial, log_combinations
from pipelines.gold.instance_names import prefix
from schemas.states import ClientLibrary

SIGNIFICANCE = 0.01
"""Probability that chance alone puts any value on the list, after correction for the number of values tested."""

LEAST_LIFT = 1.5
MOST = 5
Attributes = Mapping[str, frozenset[str]]
"""Attribute → values, of a group or of an instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A value that the affected have more often than the others.

    `share` is the part of the affected with the value, `baseline` the part of the others. `lift` is their ratio; if no
    other has the value, the ratio is computed as if half of one had it.
    """

    attribute: str
    value: str
    share: float
    baseline: float
    lift: float
    probability: float


def differences(hit: Sequence[Attributes], rest: Sequence[Attributes]) -> list[Difference]:
    """Return values that the affected have more often than chance explains, the least likely first.

    Method: Fisher's exact test, one-sided, with Bonferroni's correction for the number of values tested. The list is
    empty if no value is significant.
    """
    if not hit or not rest:
        return []
    mine, others = _counted(hit), _counted(rest)
    total, chosen = len(hit) + len(rest), len(hit)
    out = []
    for (attribute, value), count in mine.items():
        having = count + others[attribute, value]
        probability = _at_least(count, chosen, having, total) * len(mine)
        share, baseline = count / chosen, others[attribute, value] / len(rest)
        lift = share / max(baseline, 0.5 / len(rest))
        if probability <= SIGNIFICANCE and lift >= LEAST_LIFT:
            out.append(
                Difference(
                    attribute=attribute,
                    value=value,
                    share=share,
                    baseline=baseline,
                    lift=lift,
                    probability=probability,
                )
            )
    return sorted(out, key=lambda d: (d.probability, -d.share, d.attribute, d.value))[:MOST]


def culprits(starters: Sequence[Attributes], members: Sequence[Attributes]) -> list[Difference]:
    """Return the same within one group: `starters` are the instances that started rebalances, `members` all."""
    if not starters or len(members) < 2:
        return []
    mine, all_of_them = _counted(starters), _counted(members)
    out = []
    for (attribute, value), count in mine.items():
        usual = min(1.0, max(all_of_them[attribute, value], 1) / len(members))
        if usual == 1.0:
            continue
        probability = binomial(count, len(starters), usual) * len(mine)
        share = count / len(starters)
        if probability <= SIGNIFICANCE and share / usual >= LEAST_LIFT:
            out.append(
                Difference(
                    attribute=attribute,
                    value=value,
                    share=share,
                    baseline=usual,
                    lift=share / usual,
                    probability=probability,
                )
            )
    return sorted(out, key=lambda d: (d.probability, -d.share, d.attribute, d.value))[:MOST]


def attributes_of(member: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return a member's host, name, library and topics from a row of `generation_members`."""
    client_id = member["client_id"] or ""
    out: dict[str, set[str]] = defaultdict(set)
    out["host"] = {member["client_host"].lstrip("/")} if member["client_host"] else set()
    out["client_id_prefix"] = {prefix(client_id)} - {""}
    out["client_library"] = {member["client_library"]} - {None, ClientLibrary.UNKNOWN}
    out["topic"] = set(member["subscribed_topics"] or ())
    out["is_static"] = {str(member["group_instance_id"] is not None).lower()}
    return out


def frozen(found: Mapping[str, Iterable[str]]) -> Attributes:
    """Return the attributes with immutable sets of values."""
    return {name: frozenset(values) for name, values in found.items()}


def _counted(rows: Sequence[Attributes]) -> Counter[tuple[str, str]]:
    return Counter((name, value) for row in rows for name, values in sorted(row.items()) for value in sorted(values))


def _at_least(count: int, chosen: int, having: int, total: int) -> float:
    """Return the probability that at least `count` of `chosen` rows have a value, if `having` of `total` have it."""
    whole = log_combinations(total, chosen)
    most = min(chosen, having)
    logs = (
        log_combinations(having, k) + log_combinations(total - having, chosen - k) - whole
        for k in range(count, most + 1)
    )
    return fsum(map(exp, logs))
