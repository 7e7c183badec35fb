"""The members, owners and settings of a group at an instant, and what differs between two."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards.pages import group
from dashboards.queries.store import Store
from dashboards.urlstate import parse
from dashboards.views.instants import GroupInstant, group_instant, resources_text
from testing.serving import serving
from testing.warehouses.recorded import rows_of
from testing.warehouses.recorded import store as stored
from tests.ui.reading import words

GROUP = ("churn", "imports-joiner")
NOW = 1_900_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made: Path = tmp_path_factory.mktemp("instants")
    stored(made, rows_of({"churn": "eager_churn"}))
    return made


@pytest.fixture(scope="module")
def recorded(folder, lake) -> Store:
    return Store(lake(folder))


@pytest.fixture(scope="module")
def generations(recorded) -> list[dict]:
    seen = recorded.span(GROUP[0])
    rows = recorded.generations(*GROUP, seen.whole).rows
    return sorted(rows, key=lambda g: g["joined_at"])


def at(recorded: Store, ms: int) -> GroupInstant:
    return group_instant(recorded, recorded.group(*GROUP), ms, recorded.span(GROUP[0]).last_at)


def test_between_two_rebalances_the_members_of_the_generation_own_its_partitions(recorded, generations) -> None:
    peopled = [g for g in generations if not g["is_empty"] and g["completed_at"] is not None]
    for g in peopled:
        one = at(recorded, g["completed_at"] + 1)
        assert (one.generation["generation_id"], one.style) == (g["generation_id"], "working")
        assert len(one.members) == g["member_count"]
        owned = [(r["name"], r["index"]) for m in one.members.values() for r in m["assigned"] or ()]
        assert len(owned) == len(set(owned)) == g["resources_assigned"]


def test_before_the_first_record_nothing_is_known(recorded, generations) -> None:
    one = at(recorded, generations[0]["prepared_at_earliest"] - 60_000)
    assert (one.style, one.generation, dict(one.members)) == ("unknown", None, {})


def test_in_a_rebalance_of_an_eager_group_partitions_are_not_processed(recorded, generations) -> None:
    made = next(
        g for g in generations if g["prepared_at"] and g["join_ms"] and g["join_ms"] > 100 and g["stopped_resources"]
    )
    one = at(recorded, made["joined_at"] - 1)
    assert one.style == "stopped"
    assert len(one.stopped | one.uncertain) == made["stopped_resources"]


def test_the_page_compares_two_instants(recorded, generations) -> None:
    first, last = generations[3], generations[6]
    search = (
        f"?cluster=churn&group={GROUP[1]}&from=all&at={last['completed_at'] + 1}&against={first['completed_at'] + 1}"
    )
    text = words(group.render(recorded, parse("/group", search), NOW))
    assert "compared with" in text
    assert f"{first['generation_id']}, since" in text
    assert "left" in text
    assert "another process" in text or "joined" in text


def test_an_instant_that_is_no_time_is_a_notice() -> None:
    state = parse("/group", "?cluster=churn&group=g&at=noon&against=1")
    assert (state.at, state.against) == (None, 1)
    assert "The address's “at” is no time." in state.notices


def test_consecutive_partitions_are_one_span() -> None:
    text = resources_text(frozenset({("orders", 0), ("orders", 1), ("orders", 3), ("mailer", -1)}))
    assert text == "mailer; orders 0\N{EN DASH}1, 3"


def test_a_rebalance_is_one_click_from_the_group_before_and_after_it(window, folder) -> None:
    path = f"/rebalance?cluster=churn&group={GROUP[1]}&incarnation=0&generation=9"
    with serving(folder) as address, window.page(address) as watched:
        page = watched.open(path)
        page.click("a:text-is('Before and after')")
        page.wait_for_selector("h2:has-text('compared with')")
        page.click("a:text-is('Stop comparing')")
        page.wait_for_selector("h2:text-matches('^At 2026-[^,]*$')")
        page.mouse.move(0, 0)
        page.keyboard.press("i")
        page.wait_for_function("new URLSearchParams(location.search).has('at')")
