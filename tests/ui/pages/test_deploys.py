"""The page of deploys: the list, two of them side by side, what is missing, hostile names and readers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

from dashboards.app import page
from dashboards.figures.deploys import steps
from dashboards.lake.lake import LocalLake
from dashboards.lake.readers import Readers, ReadersLake
from dashboards.queries.deploy_store import DeployStore
from dashboards.queries.store import Store
from dashboards.urlstate import Window
from schemas.written import bounded
from testing import sample
from tests.ui.pages.hostile import STRINGS
from tests.ui.pages.test_hostile import assert_harmless
from tests.ui.reading import links, words

GROUP = f"cluster={sample.CLUSTER}&group=billing-worker"


def shown(store: Store, search: str, now: int) -> Any:
    return page(store, "/deploys", search, None, now)[0]


@pytest.fixture(scope="module")
def store(warehouse) -> Store:
    return Store(LocalLake(warehouse))


@pytest.fixture
def began(now) -> tuple[int, int]:
    newest, before = sample.deploys(now)["deploys"]
    return newest["started_at"], before["started_at"]


def test_the_list_has_cost_against_the_one_before_who_stayed_away_and_who_was_slow(store, now, began) -> None:
    made = shown(store, "", now)
    text = words(made)
    for part in (
        "2 deploys of 1 group: 1 announced by a mark, 1 recognized by their rebalances.", "v2.31", "no mark",
        bounded(90, 70, 120, "90 %"), "3.0 times the one before", "first known deploy", "62 s", "31 s",
        "so far 1: billing-2 (10.0.4.13)", "billing-1 (10.0.4.12): 7.2 s", "not recorded", "all came back",
    ):  # fmt: skip
        assert part in text, part
    assert text.index("v2.31") < text.index("first known deploy"), "newest first"
    pair = next(each for each in links(made) if "deploy=" in each)
    assert f"deploy={began[0]}" in pair
    assert any(each.startswith("/group?") and f"from={began[0] - 60_000}" in each for each in links(made))


def test_a_deploy_is_compared_with_the_one_before_unless_another_is_chosen(store, now, began) -> None:
    newest, before = began
    text = words(shown(store, f"?{GROUP}&deploy={newest}", now))
    for part in (
        "“v2.31” cost 3.0 times as much as the deploy of", "The 90 % intervals do not overlap.",
        "The group was stable after 62 s; it was 31 s then.", "Side by side", "3 → 2", "6 rebalances",
        "announced by a mark", "recognized by its rebalances", "Without an owner", "shown above",
    ):  # fmt: skip
        assert part in text, part
    text = words(shown(store, f"?{GROUP}&deploy={before}", now))
    assert "the first known deploy of this group" in text
    text = words(shown(store, f"?{GROUP}&deploy={before}&against={newest}", now))
    assert "cost 67 % less than “v2.31”" in text


def test_wrong_addresses_are_said_and_show_the_rest(store, now, began) -> None:
    assert "There is no such deploy." in words(shown(store, f"?{GROUP}&deploy=7", now))
    assert "2 deploys of 1 group" in words(shown(store, f"?{GROUP}&deploy=7", now))
    text = words(shown(store, f"?{GROUP}&deploy={began[0]}&against=7", now))
    assert "There is no such deploy to compare with." in text
    assert "“deploy” is no time" in words(shown(store, "?deploy=yesterday", now))


def test_what_is_missing_is_said_in_words(store, tmp_path, now) -> None:
    assert "No analysis has run yet" in words(shown(Store(LocalLake(tmp_path)), "", now))
    assert "No mark announced a deploy of this group" in words(
        shown(store, f"?cluster={sample.CLUSTER}&group=search-indexer", now)
    )
    assert "No mark announced a deploy of such a group" in words(shown(store, "?q=search", now))
    assert "Not observed in this range" in words(shown(store, "?from=1000&to=2000", now))
    rows = sample.everyday(now)
    rows["deploys"] = []
    sample.write(tmp_path / "none", rows)
    assert "No mark announced a deploy in this range" in words(shown(Store(LocalLake(tmp_path / "none")), "", now))


def test_a_mark_that_nothing_followed_is_said(tmp_path, now) -> None:
    rows = sample.everyday(now)
    quiet = dict.fromkeys(("ended_at", "stable_at", "stable_ms", "slowest", "slowest_host", "slowest_waited_ms"))
    lost = {name: 0.0 for name in rows["deploys"][0] if name.startswith("lost")}
    lists: dict[str, Any] = {"restarted": [], "not_back": [], "not_back_hosts": [], "rebalances": 0}
    nothing = rows["deploys"][0] | quiet | lost | lists
    rows["deploys"] = [nothing | {"started_at": now - 40 * 60_000}, nothing | {"started_at": now - 60_000}]
    sample.write(tmp_path, rows)
    text = words(shown(Store(LocalLake(tmp_path)), "?from=now-6h", now))
    assert "no rebalance followed within 30 min" in text
    assert "no rebalance followed so far" in text


def test_hostile_names_stay_text_in_the_list_and_side_by_side(tmp_path, now) -> None:
    chosen = STRINGS[::7]
    rows = sample.hostile(now, chosen)
    rows["deploys"] = []
    for at, text in enumerate(chosen):
        for row in sample.deploys(now, text)["deploys"]:
            named = {name: [text] for name in ("restarted", "not_back", "not_back_hosts")}
            rows["deploys"].append(row | named | {"text": text, "slowest": text, "slowest_host": text})
            rows["deploys"][-1]["started_at"] += at
    sample.write(tmp_path, rows)
    store = Store(LocalLake(tmp_path))
    printed = json.dumps(shown(store, "?from=all", now), cls=PlotlyJSONEncoder)
    assert "Something went wrong" not in printed
    assert_harmless(printed)
    pairs = [each for each in links(shown(store, "?from=all", now)) if "deploy=" in each]
    for address in dict.fromkeys(pairs):
        path, _, search = address.partition("?")
        printed = json.dumps(page(store, path, f"?{search}", None, now)[0], cls=PlotlyJSONEncoder)
        assert "Something went wrong" not in printed
        assert "Deploy of " in printed, address
        assert_harmless(printed)


def test_a_reader_sees_only_deploys_of_his_groups(warehouse, now, began) -> None:
    def of(prefix: str, search: str) -> str:
        lake = ReadersLake(LocalLake(warehouse), lambda: Readers({"r": [prefix]}).prefixes(["r"]))
        return words(shown(Store(lake), search, now))

    for search in ("", f"?{GROUP}", f"?{GROUP}&deploy={began[0]}"):
        assert "v2.31" in of("billing-", search)
        other = of("imports-", search)
        assert "billing-2" not in other
        assert "v2.31" not in other


def test_every_lake_gives_the_same_deploys_with_the_median_before(lake, warehouse, now) -> None:
    asked = DeployStore(lake(warehouse))
    newest, before = asked.deploys(Window(now - 86_400_000, now, is_live=False)).rows
    assert (newest["median_before"], newest["deploys_before"], newest["before_at"]) == (30.0, 1, before["started_at"])
    assert (before["median_before"], before["deploys_before"], before["before_at"]) == (None, 0, None)
    assert asked.of_group(sample.CLUSTER, "billing-worker").rows == [newest, before]
    assert asked.deploy(sample.CLUSTER, "billing-worker", newest["started_at"]) == newest


def test_steps_count_what_has_no_owner_from_the_start_to_the_end() -> None:
    def stop(began: int, resumed: int | None) -> dict[str, Any]:
        ended = resumed is not None
        return {"stopped_at_earliest": began, "stopped_at_latest": began, "resumed_at_earliest": resumed,
                "stopped_ms": resumed - began if ended else None}  # fmt: skip

    found = steps([stop(90, 130), stop(110, 130), stop(150, None), stop(20, 30), stop(220, 230)], 100, 200)
    assert found == [(0, 1), (10, 2), (30, 0), (50, 1), (100, 1)]
    assert steps([], 100, 200) == [(0, 0), (100, 0)]
