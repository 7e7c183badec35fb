"""Why a group rebalances, as the pages Advice and Group say it."""

from __future__ import annotations

import pytest
from deltalake import write_deltalake

from dashboards.pages.advice import render
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from dashboards.views.diagnoses import panel
from pipelines.arrow_types import stored
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.rows import AnalysisConfig, gold_rows
from schemas.gold import ADVICE, DIAGNOSES
from tests.gold.histories import START, EagerGroup
from tests.ui.reading import parts, words

DAY = 86_400_000
GROUP = "orders-<b>app</b>"


def evidence(part) -> list[str]:
    """Return the CSS classes of the evidence grades shown."""
    styles = [getattr(each, "className", "") or "" for each in parts(part)]
    return [style for style in styles if style.startswith("evidence")]


@pytest.fixture(scope="module")
def store(tmp_path_factory, lake) -> Store:
    """One group with restarts and a member whose session expires; a day later the group has only restarts."""
    folder = tmp_path_factory.mktemp("diagnosed")
    group = EagerGroup()
    for index in range(3):
        group.restarts(index, 100_000 + index * 60_000, 5_000)
    group.leaves(1, 400_000, how="session_expired", silent_ms=45_000, trigger="session_expired")
    group.returns(1, 450_000)
    group.restarts(0, DAY + 100_000, 5_000)
    known = {"broker": BrokerSettings(), "config": AnalysisConfig(), "since_ms": 0, "until_ms": START + DAY}
    found = gold_rows("kafka", GROUP, group.silver(), **known)
    for table in (ADVICE, DIAGNOSES):
        write_deltalake(f"{folder}/{table.name}", stored(found[table.name], table))
    return Store(lake(folder))


def test_what_is_wrong_comes_before_what_is_normal_and_each_has_its_evidence(store) -> None:
    (section,) = panel(store.diagnosis("kafka", GROUP, Window(START, START + DAY // 2, is_live=False)))
    text = words(section)
    assert "Of 9 rebalances" in text
    assert text.index("2 come from members that went silent (session timeout): app-1") < text.index("6 from deploys")
    assert {"evidence observed", "evidence inferred"} <= set(evidence(section))
    assert "The session (45 s) of app-1 (once) expired" in text


def test_the_diagnosis_of_the_day_that_is_looked_at_is_shown(store) -> None:
    later = words(panel(store.diagnosis("kafka", GROUP, Window(START + DAY, START + 2 * DAY, is_live=False))))
    assert "Of 11 rebalances" in later
    assert store.diagnosis("kafka", GROUP, Window(START + 3 * DAY, START + 4 * DAY, is_live=False)) == []
    assert panel([]) == []


def test_advice_says_why_beside_what_to_change(store) -> None:
    text = words(render(store, parse("/advice", ""), 0))
    assert text.index("Why it rebalances") < text.index("What other settings would do")
    assert "Of 11 rebalances" in text


def test_a_warehouse_that_was_analysed_before_there_were_diagnoses_shows_none(tmp_path, lake) -> None:
    old = Store(lake(tmp_path))
    assert old.diagnoses().rows == []
    assert old.diagnosis("kafka", GROUP, Window(START, START + DAY, is_live=False)) == []
