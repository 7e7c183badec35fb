"""Which resources change their owner under each assignor."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from pipelines.gold.advice.assignors import assign, sticky

ONE = [("a", p) for p in range(12)]
ALL = frozenset({"a"})


def test_range_gives_the_first_members_one_more_of_each_topic() -> None:
    resources = [("a", 0), ("a", 1), ("a", 2), ("b", 0)]
    both = frozenset({"a", "b"})
    assert assign("range", resources, {1: both, 2: both}, {}) == {("a", 0): 1, ("a", 1): 1, ("a", 2): 2, ("b", 0): 1}


def test_round_robin_deals_to_those_that_subscribed() -> None:
    resources = [("a", 0), ("b", 0), ("b", 1)]
    found = assign("roundrobin", resources, {1: frozenset({"a", "b"}), 2: frozenset({"b"})}, {})
    assert found == {("a", 0): 1, ("b", 0): 2, ("b", 1): 1}


def test_sticky_moves_no_more_than_a_newcomers_share() -> None:
    before = assign("range", ONE, dict.fromkeys((1, 2), ALL), {})
    after = sticky(ONE, dict.fromkeys((1, 2, 3), ALL), before)
    assert sum(after[r] != before[r] for r in ONE) == 4
    assert set(Counter(after.values()).values()) == {4}


def test_sticky_moves_only_what_a_leaver_had() -> None:
    before = assign("range", ONE, dict.fromkeys((1, 2, 3), ALL), {})
    after = sticky(ONE, dict.fromkeys((1, 2), ALL), before)
    assert {r for r in ONE if after[r] != before[r]} == {r for r in ONE if before[r] == 3}


@pytest.mark.parametrize("seed", range(20))
def test_sticky_is_balanced_and_gives_everybody_only_what_it_subscribed_to(seed) -> None:
    random = Random(seed)
    topics = ["a", "b", "c"]
    resources = [(t, p) for t in topics for p in range(random.randrange(1, 9))]
    members = {m: frozenset(random.sample(topics, random.randrange(1, 4))) for m in range(random.randrange(1, 6))}
    before = {r: random.randrange(8) for r in resources}
    after = sticky(resources, members, before)
    assert all(r[0] in members[m] for r, m in after.items())
    assert {r for r in resources if any(r[0] in s for s in members.values())} == set(after)
    same = dict.fromkeys(range(3), ALL)
    counts = Counter(sticky(ONE, same, {r: random.randrange(5) for r in ONE}).values())
    assert max(counts.values()) - min(counts.values()) <= 1
