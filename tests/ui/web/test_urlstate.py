"""The address contains the whole state of a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.pages.deploys import _window as deploys_window
from dashboards.queries.store import KnownSpan
from dashboards.urlstate import LANES_PINNED, LONGEST_ID, State, Window, group_hash, parse, window
from dashboards.views.components import paging_links
from dashboards.views.ranges import ranges
from tests.ui.reading import links

NOW = 1_800_000_000_000
HOUR = 3_600_000


def split(href):
    path, _, query = href.partition("?")
    return path, f"?{query}"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=120), st.integers(-1, 2**31 - 1))
def test_any_group_id_comes_back_from_its_own_link(group, generation):
    href = State(page="fleet", start="now-6h").href("rebalance", cluster="c", group=group, generation=generation)
    found = parse(*split(href))
    assert ("rebalance", "c", group, generation, "now-6h") == (
        found.page, found.cluster, found.group, found.generation, found.start,
    )  # fmt: skip
    assert "/rebalance" == href.partition("?")[0]


def test_an_id_too_long_for_a_request_line_goes_by_its_hash():
    found = parse(*split(State(page="fleet").href("group", cluster="c", group="x" * (LONGEST_ID + 1))))
    assert (group_hash("x" * (LONGEST_ID + 1)), "") == (found.gid, found.group)


@given(st.text(), st.text())
def test_no_address_is_too_broken_to_read(pathname, search):
    assert isinstance(parse(pathname, search), State)


@pytest.mark.parametrize(
    "search", ["?from=yesterday", "?from=now-1h&to=5", "?generation=1e9", "?incarnation=99999999999"]
)
def test_a_bad_value_becomes_the_default_and_a_notice(search):
    found = parse("/", search)
    assert 1 == len(found.notices)
    assert (0, None, "") == (found.incarnation, found.generation, found.end)


def test_unknown_keys_and_pages_are_no_error():
    assert ("fleet", ()) == (parse("/", "?utm=1").page, parse("/", "?utm=1").notices)
    assert parse("/nowhere", "").page is None


SOON = -(-NOW // 432_000) * 432_000
"""`NOW` rounded up to the next 200th of a day (432 s)."""


@pytest.mark.parametrize(
    ("search", "observed", "expected"),
    [
        ("", (NOW - 9 * HOUR, NOW - 1000), (Window(NOW - HOUR, NOW, is_live=True), "now-1h")),
        ("", (NOW - 9 * HOUR, NOW - 4 * HOUR), (Window(NOW - 9 * HOUR - 360_000, NOW - 4 * HOUR + 360_000, is_live=False), "all")),
        ("?from=now-24h", None, (Window(SOON - 24 * HOUR, SOON, is_live=True), "now-24h")),
        ("?from=1700000000000&to=1700000060000", None, (Window(1_700_000_000_000, 1_700_000_060_000, is_live=False), "1700000000000")),
    ],
)  # fmt: skip
def test_the_range_follows_from_the_address_and_what_there_is(search, observed, expected):
    assert expected == window(parse("/", search), NOW, observed)


def of_deploys(state, now, seen):
    first, last = seen
    known = KnownSpan(first_at=first, last_at=last, until={}, groups=1, rebalancing={}, unknown=0)
    return deploys_window(state, now, known)


@pytest.mark.parametrize("default", [window, of_deploys])
def test_data_before_the_rounded_start_of_the_default_range_is_shown(default):
    """Relative ranges end up to a 200th of their width later than now, so they begin later too."""
    for width in (HOUR, 7 * 24 * HOUR):
        for last in (NOW - width - 1, NOW - width + 1, NOW - width + width // 200, NOW - width + width // 100):
            view, _ = default(parse("/", ""), NOW + 1, (last - HOUR, last))
            assert view.start <= last <= view.end


def test_who_looks_at_about_the_same_time_sees_the_same_range():
    seen = {window(parse("/", "?from=now-6h"), now, None)[0] for now in range(SOON, SOON + 100_000, 1_000)}
    assert 1 == len({w.start for w in seen if w.end == SOON + 108_000})
    assert {0} == {w.end % 108_000 for w in seen}
    assert len(seen) <= 2


def test_another_range_and_more_groups_keep_what_the_heatmap_shows() -> None:
    state = parse("/", "?heat=rebalances&from=now-1h")
    hrefs = links([ranges(state, "now-1h", None), paging_links(state, "fleet", 30, 30, 90)])
    assert 7 == len(hrefs)
    assert all("heat=rebalances" in href for href in hrefs)


def test_pinned_lanes_go_into_the_address_and_come_back_as_they_were() -> None:
    labels = ("a&b=c", "ü, ,", "x" * 40)
    href = State(page="group").href("group", group="g", lanes=labels)
    assert parse("/group", href.partition("?")[2]).lanes == labels
    assert len(parse("/group", "&".join(f"lanes={i}" for i in range(100))).lanes) == LANES_PINNED
