"""Instants are shown in the time zone that the address names."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from dashboards.app import page
from dashboards.figures.clock import MOST, STEPS, time_axis
from dashboards.queries.store import Store
from dashboards.text import clock, instant, zoned
from dashboards.urlstate import LATEST, parse
from dashboards.zone import shown_in_zone, zone
from testing import sample
from tests.ui.reading import words

HOUR = 3_600_000


def ms(text):
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


SUMMER, BACK = ms("2026-07-01T10:00:00.007"), ms("2026-10-25T01:00:00")
"""At `BACK` the clocks of Berlin are put back from 03:00 to 02:00."""


def test_instants_and_heads_name_the_zone_that_is_in_force():
    assert ("2026-07-01 10:00:00.007", "10:00:00", "UTC") == (instant(SUMMER), clock(SUMMER), zone())
    with shown_in_zone("Asia/Kolkata"):
        assert ("2026-07-01 15:30:00.007", "15:30:00", "Asia/Kolkata") == (instant(SUMMER), clock(SUMMER), zone())
        assert "Began (Asia/Kolkata)" == zoned("Began (UTC)")
    assert "UTC" == zone()


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "Europe", "../../etc/passwd", "/etc/localtime", "Europe/Berlin\0", "x" * 5000, "\ud800",
             "<b>", "zone.tab"]
)  # fmt: skip
def test_what_is_no_zone_is_utc_and_a_notice(name):
    found = parse("/", "?" + "tz=" + name.encode("utf-8", "surrogatepass").hex("%").join(("%", "")))
    assert ("", 1) == (found.tz, len(found.notices))


def test_a_link_keeps_the_zone():
    state = parse("/", "?tz=Europe/Berlin&from=now-6h")
    assert "/storms?from=now-6h&tz=Europe%2FBerlin" == state.href("storms")
    assert "" == parse("/", "?tz=UTC").tz


def test_a_time_on_the_zones_clocks_is_an_instant():
    found = parse("/", "?from=2026-07-01T12:00&to=2026-07-01T12:00:30&tz=Europe%2FBerlin")
    assert (str(ms("2026-07-01T10:00:00")), str(ms("2026-07-01T10:00:30"))) == (found.start, found.end)
    assert str(ms("2026-07-01T12:00:00")) == parse("/", "?from=2026-07-01T12:00").start


def test_an_hour_that_comes_twice_is_shown_whole():
    found = parse("/", "?from=2026-10-25T02:00:00&to=2026-10-25T02:59:00&tz=Europe%2FBerlin")
    assert (BACK - HOUR, BACK + 59 * 60_000) == (int(found.start), int(found.end))


@pytest.mark.parametrize("search", ["?from=2026-02-30T10:00", "?from=0000-01-01T00:00&tz=Asia/Tokyo",
                                    "?from=999999999999999", "?zoom=5", "?zoom=9-3", f"?zoom=1-{LATEST + 1}"])  # fmt: skip
def test_a_moment_that_no_calendar_has_is_a_notice(search):
    found = parse("/", search)
    assert ("", None, 1) == (found.start, found.zoom, len(found.notices))


def test_a_range_of_all_calendars_can_be_shown(tmp_path, now, lake):
    sample.write(tmp_path, sample.static(now))
    store = Store(lake(tmp_path))
    for path in ("/", "/group", "/storms", "/reassignments"):
        search = f"?cluster=prod-eu&group=pricing-static&from=0&to={LATEST}&tz=Pacific/Kiritimati"
        assert "went wrong" not in words(page(store, path, search, None, now)[0]), path


def test_a_page_says_every_instant_in_its_zone(tmp_path, now, lake):
    sample.write(tmp_path, sample.static(now))
    store = Store(lake(tmp_path))
    for path in ("/", "/group", "/rebalance", "/storms", "/reassignments", "/advice", "/health"):
        search = "?cluster=prod-eu&group=pricing-static&generation=1&tz=Asia%2FKolkata"
        made, _, fresh = page(store, path, search, None, now)
        assert "UTC" not in words([made, fresh]), path
    assert "UTC" in words(page(store, "/", "", None, now)[0])


def texts(start, end):
    return time_axis(start, end)["ticktext"]


def test_ticks_stand_at_round_times_of_the_zones_clocks():
    with shown_in_zone("Asia/Kolkata"):
        assert ["15:30<br>Jul 1, 2026", "16:00", "16:30", "17:00", "17:30"] == texts(SUMMER - 7, SUMMER + 2 * HOUR)[::2]
    assert ["00:00<br>Jul 1, 2026", "06:00", "12:00", "18:00", "00:00<br>Jul 2, 2026"] == texts(
        ms("2026-07-01T00:00:00"), ms("2026-07-02T00:00:00")
    )[::2]


def test_no_tick_is_left_out_or_told_twice_when_clocks_are_put_back():
    with shown_in_zone("Europe/Berlin"):
        axis = time_axis(BACK - 2 * HOUR, BACK + 2 * HOUR)
    hours = [text[:5] for text in axis["ticktext"] if ":00" in text]
    assert ["01:00", "02:00", "02:00", "03:00"] == hours[:4]
    assert sorted(set(axis["tickvals"])) == list(axis["tickvals"])


@pytest.mark.parametrize("width", [3, *(step * 7 for step in STEPS)])
def test_an_axis_of_any_width_has_a_few_ticks_within_it(width):
    axis = time_axis(SUMMER, SUMMER + width)
    assert 1 <= len(axis["tickvals"]) <= 2 * MOST
    assert all(SUMMER <= at <= SUMMER + width for at in axis["tickvals"])
    assert len(axis["tickvals"]) == len(axis["ticktext"])
    assert not re.search(r"[<>$]", "".join(axis["ticktext"]).replace("<br>", ""))
