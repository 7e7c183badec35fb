"""The page of partitions that move between brokers."""

from __future__ import annotations

import pytest

from dashboards.pages.reassignments import render
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from schemas.written import size
from testing import sample
from tests.ui.reading import words

HOUR = 3_600_000


@pytest.fixture
def store(warehouse, lake) -> Store:
    return Store(lake(warehouse))


def test_running_ones_come_first_with_the_rebalances_of_the_groups_that_read_the_topic(store, now) -> None:
    rows = store.reassignments(Window(now - HOUR, now + 1, is_live=True)).rows
    assert [None, None] == [row["completed_at"] for row in rows[:2]]
    assert all(row["completed_at"] is not None for row in rows[2:])
    assert "billing-worker" in rows[0]["groups"]
    assert rows[0]["rebalances"] > 0


def test_what_is_bounded_stalled_or_unknown_says_so(store, now) -> None:
    text = words(render(store, parse("/reassignments", "?from=now-1h"), now))
    for printed in (
        "stalled for 90 s", "20.0 MB of 80.0 MB (25 %)", "1.3 MB/s", "replicas added (2 of 6)", "cancelled",
        "ended, outcome not observed", "not known", "1, 0, 2 → 2, 3, 5", "or up to 900 ms before", "bounded",
    ):  # fmt: skip
        assert printed in text, printed
    assert "inferred" not in text


def test_none_in_range_says_what_would_have_seen_one(store, now, tmp_path, lake) -> None:
    assert "No reassignment seen" in words(render(store, parse("/reassignments", "?from=1&to=2"), now))
    empty = Store(lake(tmp_path))
    assert "No poll and no controller's log" in words(render(empty, parse("/reassignments", ""), now))


def test_polling_alone_does_not_make_what_was_read_look_newer(tmp_path, now, lake) -> None:
    rows = sample.merge({}, sample.static(now - HOUR), sample.coverage(now - HOUR))
    polled = {"source": "poll", "source_partition": -1, "from_at": now - HOUR, "to_at": now}
    rows["coverage"].append(rows["coverage"][0] | polled)
    sample.write(tmp_path, rows)
    assert now - HOUR >= Store(lake(tmp_path)).span().last_at


@pytest.mark.parametrize(("number", "text"), [(0, "0 B"), (999, "999 B"), (80_193_886, "80.2 MB"), (2.5e13, "25.0 TB")])
def test_bytes_are_reported_in_powers_of_a_thousand(number, text) -> None:
    assert text == size(number)


def test_a_browser_shows_the_page_and_leads_on_to_a_group(watched) -> None:
    page = watched.open("/", "#page .head")
    page.click("header a:text-is('Reassignments')")
    page.wait_for_selector("h1:text-is('Reassignments')")
    page.goto(watched.address + "/reassignments?from=now-1h")
    page.wait_for_selector("td:text-is('orders-0')")
    page.click("table a:text-is('billing-worker') >> nth=0")
    page.wait_for_selector("h1:text-is('billing-worker')")
