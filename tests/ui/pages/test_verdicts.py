"""The verdict is the first thing that a page says, with its evidence and proof."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from dashboards.pages import fleet, group, rebalance, storm
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from dashboards.views.verdicts import verdict_panel, verdict_sentence
from testing.sample import CLUSTER
from tests.ui.pages.hostile import STRINGS
from tests.ui.reading import parts, words

OF = f"from=all&cluster={CLUSTER}&group=billing-worker&incarnation=0"


@pytest.fixture
def store(warehouse, lake) -> Store:
    return Store(lake(warehouse))


def test_a_rebalance_says_first_who_it_was_and_shows_the_proof(store, now) -> None:
    text = words(rebalance.render(store, parse("/rebalance", f"?{OF}&generation=5"), now), "")
    begun = text.index("It was the broker observed")
    assert begun < text.index("is gone (session expired)")
    for each in (
        "coordinator moved during the rebalance",
        "coordinator moved (broker 2 took over)",
        "billing-3",
        "10.0.4.13",
    ):
        assert each in text, each
    assert "/10.0.4.13" not in text[: text.index("Anatomy")]


def test_a_rebalance_without_a_verdict_shows_none(store, now) -> None:
    text = words(rebalance.render(store, parse("/rebalance", f"?{OF.replace('billing', 'imports')}&generation=5"), now))
    assert "It was" not in text


def test_a_group_has_sums_by_verdict_and_cause(store, now) -> None:
    text = words(group.render(store, parse("/group", f"?{OF}"), now))
    for each in ("Broker or application?", "8 rebalances"):
        assert each in text, each
    assert re.search(r"the broker \| trouble at the coordinator \| [^|]+ \| 1 \| 1", text)
    assert text.index("Broker or application?") < text.index("What happened")


def test_the_fleet_has_sums_by_verdict_and_cause_in_any_range(store, now) -> None:
    text = words(fleet.render(store, parse("/", "?from=all"), now))
    assert re.search(r"the broker \| trouble at the coordinator \| [^|]+ \| 1 \| 1 \| 1", text)
    assert "of the loss: the broker" in text
    assert "the broker | trouble at the coordinator" in words(fleet.render(store, parse("/", "?from=now-7d"), now))


def test_the_causes_of_a_verdict_stand_together_the_costly_verdict_first(warehouse, lake, now) -> None:
    found = Store(lake(warehouse)).fleet_verdicts(Window(0, now, is_live=False))
    named = [row["verdict"] for row in found]
    assert len(dict.fromkeys(named)) == sum(a != b for a, b in pairwise(["", *named]))
    lost = [row["lost_by_verdict"] for row in found]
    assert lost == sorted(lost, reverse=True)
    assert sum(row["rebalances"] for row in found) == 8


def test_a_storm_says_first_what_cost_most(store, now) -> None:
    text = words(storm.render(store, parse("/storms", "?storm=together"), now), "")
    assert "It was probably the broker inferred The broker: 811 lost in 3 rebalances; a deploy or scaling: 24" in text
    assert "It was" not in words(storm.render(store, parse("/storms", "?storm=alone"), now))


def test_an_unknown_verdict_blames_nobody(store) -> None:
    row = store.verdict(CLUSTER, "billing-worker", 0, 5)
    assert row is not None
    text = words(verdict_sentence(row | {"verdict": "unknown", "evidence": "inferred"}), "")
    assert text.startswith("Broker or application: not known")
    assert "probably" in words(verdict_sentence(row | {"evidence": "inferred"}))
    assert verdict_sentence(None) is None


def test_names_of_clients_are_text(store) -> None:
    row = store.verdict(CLUSTER, "billing-worker", 0, 5)
    assert row is not None
    for name in STRINGS[::7]:
        hostile = row | {"instances": [name], "hosts": [name], "reason": name, "proof": [name]}
        shown = [
            verdict_sentence(hostile),
            verdict_panel(hostile, [], store.lines(CLUSTER, "none", Window(0, 1, is_live=False))),
        ]
        assert not [each for each in parts(shown) if getattr(each, "dangerously_allow_html", False)]
        assert "\u202e" not in words(shown)
        assert "\x00" not in words(shown)
