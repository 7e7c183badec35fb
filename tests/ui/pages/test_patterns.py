"""Patterns of a group, as the pages Group and Fleet show them."""

from __future__ import annotations

import pytest
from deltalake import write_deltalake

from dashboards.pages.fleet import render as fleet
from dashboards.pages.group import render as group_page
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from dashboards.views.patterns import NAMES, lasting_list, panel
from pipelines.arrow_types import stored
from schemas.gold import DIAGNOSES, PATTERNS
from schemas.states import Pattern
from testing import sample
from tests.ui.reading import parts, words
from tests.whole_rows import whole

HOUR = 3_600_000
GROUP = "billing-worker"


def row(now: int, pattern: str, **values) -> dict:
    fields = {"cluster": sample.CLUSTER, "group_id": GROUP, "as_of": now, "pattern": pattern, "subject": ""}
    fields |= {"started_at": now - HOUR, "last_at": now, "ended_at": None, "times": 4, "instances": ["app-1", "app-2"]}
    fields |= {"sources": ["topic", "log"], "evidence": "observed"}
    return fields | {"explanation": f"{pattern} happened.", "action": f"End {pattern}."} | values


@pytest.fixture(scope="module")
def store(tmp_path_factory, lake, now) -> Store:
    """A group with a topic without an owner and a rejoin loop that is over; the patterns of the day before are gone."""
    folder = tmp_path_factory.mktemp("patterns")
    sample.write(folder, sample.merge({}, sample.everyday(now)))
    found = [
        row(now, "topic_without_owner", subject="<b>audit</b>"),
        row(now, "rejoin_loop", ended_at=now - HOUR // 2, last_at=now - HOUR // 2),
        row(now - 24 * HOUR, "poll_timeouts", started_at=now - 25 * HOUR, last_at=now - 24 * HOUR),
        row(now - 24 * HOUR, "connect_delay", group_id="shipping-planner", started_at=now - 25 * HOUR),
    ]
    judged = [("billing-worker", now), ("billing-worker", now - 24 * HOUR), ("shipping-planner", now)]
    why = {"cluster": sample.CLUSTER, "cause": "deploy", "rank": 1, "rebalances": 3, "share": 1.0, "is_normal": True}
    why |= {"lost_resource_seconds": 1.0, "first_at": now, "last_at": now, "window_start_at": now - HOUR}
    why |= {"instances": [], "evidence": "inferred", "explanation": "Deploys."}
    diagnoses = [why | {"group_id": group, "as_of": at} for group, at in judged]
    for table, rows in ((PATTERNS, found), (DIAGNOSES, diagnoses)):
        write_deltalake(f"{folder}/{table.name}", stored([whole(each, table) for each in rows], table))
    return Store(lake(folder))


def test_the_newest_analysis_is_shown_with_what_to_do(store, now) -> None:
    rows = store.patterns(sample.CLUSTER, GROUP, Window(now - 2 * HOUR, now + 1, is_live=False))
    assert ["topic_without_owner", "rejoin_loop"] == [each["pattern"] for each in rows]
    (section,) = panel(rows)
    text = words(section)
    assert "2 patterns found; 1 with no end in the data." in text
    assert "Topic without an owner:  | topic_without_owner happened. |  What to do:  | End topic_without_owner." in text
    assert "<b>audit</b>" in text
    assert panel([]) == []


def test_what_was_over_before_the_range_is_left_out(store, now) -> None:
    rows = store.patterns(sample.CLUSTER, GROUP, Window(now - HOUR // 4, now + 1, is_live=False))
    assert ["topic_without_owner"] == [each["pattern"] for each in rows]


def test_the_group_page_has_the_patterns_before_the_causes(store, now) -> None:
    state = parse("/group", f"?from=all&cluster={sample.CLUSTER}&group={GROUP}")
    text = words(group_page(store, state, now))
    assert "Patterns | 2 patterns found" in text
    assert text.index("2 patterns found") < text.index("Why it rebalances")


def test_the_fleet_lists_what_has_no_end_with_a_link_to_its_group(store, now) -> None:
    rows = store.lasting_patterns(Window(now - HOUR, now + 1, is_live=False), "")
    assert [(GROUP, "topic_without_owner")] == [(each["group_id"], each["pattern"]) for each in rows]
    assert [] == store.lasting_patterns(Window(now - HOUR, now + 1, is_live=False), "nobody")
    made = fleet(store, parse("/", "?from=all"), now)
    assert "billing-worker | , prod-eu: topic without an owner (<b>audit</b>), since" in words(made)
    links = [getattr(each, "href", "") or "" for each in parts(lasting_list(rows, parse("/", "")))]
    assert any(f"group={GROUP}" in link for link in links)


def test_every_pattern_has_words() -> None:
    assert set(Pattern) == set(NAMES)


def test_a_warehouse_without_patterns_shows_none(tmp_path, lake, now) -> None:
    old = Store(lake(tmp_path))
    window = Window(now - HOUR, now, is_live=False)
    assert [] == old.patterns(sample.CLUSTER, GROUP, window) == old.lasting_patterns(window, "")
