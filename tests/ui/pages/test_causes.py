"""The page Causes: what it says of verdicts, of what is not analyzed or not observed, and where its rows lead."""

from __future__ import annotations

import json

import pytest
from plotly.utils import PlotlyJSONEncoder

from dashboards.app import page
from dashboards.lake.lake import LocalLake
from dashboards.lake.readers import ReadersLake
from dashboards.queries.store import Store
from dashboards.teams import Teams
from dashboards.urlstate import parse
from dashboards.views.theme import STYLES
from dashboards.views.verdict_styles import VERDICT_STYLES
from schemas.states import Verdict
from testing import sample
from tests.ui.pages.hostile import STRINGS
from tests.ui.pages.test_hostile import assert_harmless, parts
from tests.ui.views.test_plot import assert_valid

TEAMS = Teams.of({"billing": ["billing-*"], "search & co": ["search-*"]})


def shown(store, search, now):
    """The page as it goes to the browser, and all of its parts."""
    made, _, _ = page(store, "/causes", search, None, now)
    printed = json.dumps(made, cls=PlotlyJSONEncoder)
    assert "Something went wrong" not in printed
    return printed, list(parts(json.loads(printed)))


def links(found):
    return [part["props"]["href"] for part in found if part["type"] == "Link"]


def figure(found):
    return next(part["props"]["figure"] for part in found if part["type"] == "Graph")


@pytest.fixture
def store(warehouse):
    return Store(LocalLake(warehouse), TEAMS)


@pytest.fixture
def bare(tmp_path, now):
    """A warehouse in which only two rebalances have a verdict."""
    rows = sample.everyday(now)
    sample.write(tmp_path, {**rows, "verdicts": rows["verdicts"][:2]})
    return Store(LocalLake(tmp_path), TEAMS)


@pytest.mark.parametrize("by", ["", "cluster", "team", "group"])
def test_every_row_leads_to_its_groups_or_its_page(store, now, by) -> None:
    printed, found = shown(store, f"?from=all&by={by}", now)
    hrefs = links(found)
    if by == "group":
        assert any(href.startswith("/group?") and "group=billing-worker" in href for href in hrefs)
    else:
        limit = {"": "verdict=", "cluster": "cluster=prod-eu", "team": "team=billing"}[by]
        assert any("by=group" in href and limit in href for href in hrefs)
    assert_valid(figure(found))
    assert_harmless(printed)


def test_a_range_longer_than_the_time_before_it_in_the_calendar_is_shown(bare, now) -> None:
    _, found = shown(bare, "?from=0&to=63000000000000", now)
    year = 366 * 86_400_000
    first, last = figure(found)["layout"]["xaxis"]["range"]
    assert now - 2 * year < first < last < now + 2 * year
    assert any("not observed" in str(drawn.get("hovertemplate")) for drawn in figure(found)["data"])


def test_a_row_of_a_team_leads_to_its_groups_alone(store, now) -> None:
    printed, found = shown(store, "?from=all&by=group&team=billing", now)
    assert "billing-worker" in printed
    assert "imports-joiner" not in printed
    removed = [href for href in links(found) if "by=group" in href and "team=" not in href]
    assert removed


def test_rebalances_without_a_verdict_are_shown_as_such(bare, now) -> None:
    printed, found = shown(bare, "?from=all", now)
    assert "not analyzed yet lost" in printed
    assert any("by=group" in href for href in links(found))
    drawn = figure(found)["data"]
    assert {"+"} == {
        trace["marker"]["pattern"]["shape"]
        for trace in drawn
        if "not analyzed yet" in json.dumps(trace.get("customdata"))
    }
    assert "whatever the cause" in shown(bare, "?from=all&verdict=broker", now)[0]
    assert "imports-joiner" in shown(bare, "?from=all&by=group", now)[0]


def test_without_an_analysis_nothing_looks_analyzed(tmp_path, now) -> None:
    sample.write(tmp_path, sample.everyday(now))
    for file in sorted((tmp_path / "verdicts").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (tmp_path / "verdicts").rmdir()
    printed, found = shown(Store(LocalLake(tmp_path), TEAMS), "?from=all", now)
    assert "No analysis has run yet" in printed
    assert "not analyzed yet lost" in printed
    assert {"+", "x"} == {trace["marker"]["pattern"]["shape"] for trace in figure(found)["data"]}


def test_time_that_was_not_observed_is_hatched(store, now) -> None:
    _, found = shown(store, f"?from={now - 30 * 86_400_000}&to={now + 3_600_000}", now)
    unseen = figure(found)["data"][0]
    assert ("y2", "x") == (unseen["yaxis"], unseen["marker"]["pattern"]["shape"])
    assert "not observed" in unseen["hovertemplate"]
    assert "Not observed in this range" in shown(store, "?from=1000&to=2000", now)[0]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("?by=colour", "is not one of cluster, team, group"),
        ("?from=all&team=nobody", "is no team of the setting"),
    ],
)
def test_a_bad_address_is_said(store, now, search, expected) -> None:
    assert expected in shown(store, search, now)[0]


def test_without_the_setting_no_group_has_a_team(warehouse, now) -> None:
    assert "no section [teams]" in shown(Store(LocalLake(warehouse)), "?from=all&by=team", now)[0]


def test_a_reader_sees_no_team_of_which_he_sees_no_group(warehouse, now) -> None:
    limited = Store(ReadersLake(LocalLake(warehouse), lambda: ("imports-",)), TEAMS)
    for by in ("", "cluster", "team", "group"):
        printed, _ = shown(limited, f"?from=all&by={by}", now)
        assert "billing" not in printed
        assert "search" not in printed


def test_hostile_names_stay_text(tmp_path, now) -> None:
    rows = sample.hostile(now, STRINGS[::3])
    sample.write(tmp_path, rows)
    store = Store(LocalLake(tmp_path), Teams.of({"<script>alert(1)</script>": ["*"]}))
    for by in ("cluster", "team", "group"):
        assert_harmless(shown(store, f"?from=all&by={by}", now)[0])
    assert_harmless(shown(store, "?from=all&team=%3Cscript%3E&verdict=%3Cb%3E&cause=$x$&cluster=%3Ci%3E", now)[0])


def test_weeks_begin_on_monday_in_the_zone_of_the_page(store) -> None:
    now = 1_795_700_000_000
    _, found = shown(store, "?from=all&tz=Asia%2FKolkata", now)
    state = [parse("/causes", href.partition("?")[2]) for href in links(found) if "/causes" in href]
    assert ("1794767400000", "1795372200000") in {(each.start, each.end) for each in state}


def test_every_verdict_has_a_look_of_its_own_from_the_palette_of_the_states() -> None:
    looks = {(style.colour, style.pattern) for style in VERDICT_STYLES.values()}
    assert len(looks) == len(VERDICT_STYLES) == len(Verdict) + 1
    assert {style.colour for style in VERDICT_STYLES.values()} <= {style.colour for style in STYLES.values()}
    assert len({style.pattern for style in VERDICT_STYLES.values()}) == len(VERDICT_STYLES)
