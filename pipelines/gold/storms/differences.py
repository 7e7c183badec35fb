"""What those hit have in common and the rest have not, where chance does not explain it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p
from typing import Any

from pipelines.gold.instance_names import prefix

SIGNIFICANCE = 0.01
"""Probability that chance alone would put anything on the list, after correction for the number of values tried."""

LEAST_LIFT = 1.5
MOST = 5
LIBRARIES = (
    (re.compile(r"^rdkafka(-|$)"), "librdkafka"),
    (re.compile(r"^(consumer|producer)-.+-\d+$"), "Java"),
    (re.compile(r".+-StreamThread-\d+-consumer$"), "Kafka Streams"),
    (re.compile(r"^connect-"), "Kafka Connect"),
    (re.compile(r"^sarama$"), "sarama"),
    (re.compile(r"^(kgo|franz-go)"), "franz-go"),
    (re.compile(r"^kafkajs"), "kafkajs"),
    (re.compile(r"^aiokafka-"), "aiokafka"),
    (re.compile(r"^kafka-python-"), "kafka-python"),
    (re.compile(r".+@.+ \(github\.com/segmentio/kafka-go\)$"), "kafka-go"),
)
"""Client ids that libraries give themselves: what is named otherwise stays unknown."""

Attributes = Mapping[str, frozenset[str]]
"""Attribute → values, of a group or of an instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`share` of those hit have the value, and `baseline` of all others; `lift` is their ratio, or, where none of the
    others has it, what it would be if half of one had.
    """

    attribute: str
    value: str
    share: float
    baseline: float
    lift: float
    probability: float


def differences(hit: Sequence[Attributes], rest: Sequence[Attributes]) -> list[Difference]:
    """Values that those hit have more often than chance allows (Fisher's exact test, one-sided, with Bonferroni's
    correction for every value that was tried), the least likely first. Empty where nothing stands out.
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


def culprits(who: Sequence[Attributes], members: Sequence[Attributes]) -> list[Difference]:
    """The same within one group: `who` set off each rebalance, `members` are all that could have."""
    if not who or len(members) < 2:
        return []
    mine, all_of_them = _counted(who), _counted(members)
    out = []
    for (attribute, value), count in mine.items():
        usual = min(1.0, max(all_of_them[attribute, value], 1) / len(members))
        if usual == 1.0:
            continue
        probability = _binomial(count, len(who), usual) * len(mine)
        share = count / len(who)
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
    """What a row of `generation_members` tells of a member's place, name, library and topics."""
    client_id = member["client_id"] or ""
    out: dict[str, set[str]] = defaultdict(set)
    out["host"] = {member["client_host"].lstrip("/")} if member["client_host"] else set()
    out["client_id_prefix"] = {prefix(client_id)} - {""}
    library = next((name for pattern, name in LIBRARIES if pattern.match(client_id)), None)
    out["client_library"] = {library} if library else set()
    out["topic"] = set(member["subscribed_topics"] or ())
    out["is_static"] = {str(member["group_instance_id"] is not None).lower()}
    return out


def frozen(found: Mapping[str, Iterable[str]]) -> Attributes:
    return {name: frozenset(values) for name, values in found.items()}


def _counted(rows: Sequence[Attributes]) -> Counter[tuple[str, str]]:
    return Counter((name, value) for row in rows for name, values in sorted(row.items()) for value in sorted(values))


def _at_least(count: int, chosen: int, having: int, total: int) -> float:
    """Probability that of `chosen` out of `total`, `having` of which have a value, at least `count` have it."""
    whole = _log_comb(total, chosen)
    most = min(chosen, having)
    logs = (_log_comb(having, k) + _log_comb(total - having, chosen - k) - whole for k in range(count, most + 1))
    return sum(map(exp, logs))


def _log_comb(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) if 0 <= k <= n else float("-inf")


def _binomial(count: int, tries: int, chance: float) -> float:
    logs = (_log_comb(tries, k) + k * log(chance) + (tries - k) * log1p(-chance) for k in range(count, tries + 1))
    return sum(map(exp, logs))
