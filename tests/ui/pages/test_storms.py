"""The page of storms: which there were, whom they hit, what they cost, and why a page without storms is empty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboards.pages.storms import render
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from dashboards.views import marks
from testing import sample
from testing.serving import serving
from tests.ui.browser.test_browser import CLEAN, FOREIGN, PLOT
from tests.ui.reading import links, parts, words

HOUR = 3_600_000
HOSTILE = ["<img src=x onerror=alert(1)>", "$x^2$</script>", "\u202egnp.exe\x00", "x" * 600, "%{customdata[1]}"]


def figures(part) -> list:
    return [each.figure for each in parts(part) if hasattr(each, "figure")]


@pytest.fixture
def store(warehouse, lake) -> Store:
    return Store(lake(warehouse))


def shown(store, search: str, now: int) -> str:
    return words(render(store, parse("/storms", search), now))


def test_open_ones_come_first_and_each_leads_to_itself(store, now) -> None:
    page = render(store, parse("/storms", "?from=now-1h"), now)
    text = words(page)
    assert text.index("billing-worker") < text.index("2 groups together")
    for printed in (
        "2 storms in this range, 1 open as last seen", "billing-worker: open for 14 min; 1 group, 2 rebalances",
        "no cause stands out", "≈ 835 (700", "members that went silent (session timeout)", "v2.31",
    ):  # fmt: skip
        assert printed in text, printed
    assert {"/storms?from=now-1h&storm=alone", "/storms?from=now-1h&storm=together"} <= set(links(page))


def test_a_number_that_was_cut_is_not_given_as_exact(tmp_path, lake, now) -> None:
    (one, *_) = sample.storms(now)["storms"]
    storms = [one | {"storm_id": f"s{n}"} for n in range(201)]
    sample.write(tmp_path, sample.everyday(now) | {"storms": storms})
    page = shown(Store(lake(tmp_path)), "?from=now-1h", now)
    assert "At least 200 storms in this range" in page
    assert "of at least 200 storms" in page


def test_an_open_one_lasts_to_what_its_own_cluster_wrote_last_whatever_another_wrote(store, now, monkeypatch) -> None:
    seen = store.span()
    later = replace(seen, last_at=now + HOUR, until={"prod-eu": seen.until["prod-eu"], "prod-us": now + HOUR})
    monkeypatch.setattr(store, "span", lambda cluster="": later)
    assert "billing-worker: open for 14 min" in shown(store, "?from=now-1h", now)


def test_a_storm_says_whom_it_hit_what_differs_and_what_it_followed(store, now) -> None:
    page = render(store, parse("/storms", "?storm=together"), now)
    text = words(page)
    for printed in (
        "It began 3 s after the deploy “v2.31”", "≈ 835 (700\N{EN DASH}901)", "4, 3 of them unexplained",
        "45 s later", "client host | /10.0.4.13 | 100 % | 12 % | 8.0 times", "range | 100 % | 0 % | nowhere else",
        "score 0.75", "broker 3 gets new disks",
    ):  # fmt: skip
        assert printed in text, printed
    assert "v7" not in text, "a deploy of another group"
    around = f"from={now - 43 * 60_000}&to={now - 10 * 60_000}"
    assert f"/group?{around}&cluster=prod-eu&group=billing-worker" in links(page)
    assert "/rebalance?cluster=prod-eu&group=billing-worker&incarnation=0&generation=5" in links(page)


def test_the_figures_of_its_groups_add_up_to_those_of_the_storm_hardest_hit_first(store, now) -> None:
    text = shown(store, "?storm=together", now)
    assert text.index("imports-joiner | 1 | ≈ 600 (90 %: 567\N{EN DASH}633) |") < text.index(
        "billing-worker | 3 | 235 |"
    )
    assert "All 2 groups | 4 | ≈ 835 (90 %: 802\N{EN DASH}868) |" in text
    row = store.storm("together")
    assert row["rebalances"] == sum(each["rebalances"] for each in row["by_group"])
    assert row["lost_resource_seconds"] == sum(each["lost_resource_seconds"] for each in row["by_group"])


def test_a_storm_says_how_it_spreads_over_causes_and_groups(store, now) -> None:
    text = shown(store, "?storm=together", now)
    assert "members that went silent (session timeout) | 2 | 2" in text
    assert "deploys and restarts | 1 | 1" in text


def test_groups_without_stored_figures_are_sorted_by_what_their_rebalances_lost(store, now, monkeypatch) -> None:
    row = store.storm("together") | {"by_group": None, "causes": None}
    monkeypatch.setattr(store, "storm", lambda _: row)
    text = shown(store, "?storm=together", now)
    assert "All 2 groups" not in text
    assert text.index("billing-worker |") < text.index("imports-joiner |")


def test_nothing_that_stands_out_is_shown_and_an_open_storm_has_no_end(store, now) -> None:
    text = shown(store, "?storm=alone", now)
    assert "Nothing stands out" in text
    assert "Open for 14 min" in text
    assert "still open" in text
    (figure,) = figures(render(store, parse("/storms", "?storm=alone"), now))
    assert "open, last seen" in [a["text"] for a in figure["layout"]["annotations"]]


def test_its_moments_and_the_marks_stand_on_the_axis_with_words(store, now) -> None:
    (figure,) = figures(render(store, parse("/storms", "?storm=together"), now))
    named = [a["text"] for a in figure["layout"]["annotations"]]
    assert ["began", "detected", "ended", "⚑ v2.31", "⚒ broker 3 g…disks"] == named
    assert any("the whole cluster" in a.get("hovertext", "") for a in figure["layout"]["annotations"])


def test_each_kind_of_nothing_is_kept_apart(store, now, tmp_path, lake) -> None:
    assert "No analysis has run yet" in shown(Store(lake(tmp_path / "none")), "", now)
    assert "Not observed in this range" in shown(store, "?from=1&to=2", now)
    sample.write(tmp_path / "calm", sample.merge({}, sample.static(now), sample.coverage(now)))
    assert "1 rebalance in this range, explained by deploys" in shown(
        Store(lake(tmp_path / "calm")), "?from=now-1h", now
    )
    assert "No storm has this id" in shown(store, "?storm=gone", now)


def test_marks_are_those_of_the_window_and_of_the_group_asked_for(store, now, lake) -> None:
    view = Window(now - HOUR, now + 1, is_live=True)
    assert ["v2.31", "v7", "broker 3 gets new disks"] == [m["text"] for m in store.marks(view)]
    assert ["v2.31", "broker 3 gets new disks"] == [m["text"] for m in store.marks(view, "prod-eu", ["billing-worker"])]
    assert [] == store.marks(view, "elsewhere")
    assert [] == Store(lake("/nowhere")).marks(view)


def test_a_start_that_is_only_bounded_is_reported_as_bounds(store, now) -> None:
    mark = {"marked_at": 10_000, "kind": "deploy", "text": "v2"}
    assert " It began 3 s after the deploy “v2”." == marks.time_since_mark([mark], 13_000, 13_000)
    assert " It began 3 s\N{EN DASH}5 s after the deploy “v2”." == marks.time_since_mark([mark], 13_000, 15_000)
    assert "between the earliest and the latest" in marks.time_since_mark([mark], 9_000, 15_000)
    assert "" == marks.time_since_mark([mark], 10_000 + 16 * 60_000, 10_000 + 16 * 60_000)
    assert "" == marks.time_since_mark([mark], 9_000, 9_999)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_the_storms_and_leads_on(window, address, scheme) -> None:
    with window.page(address) as watched:
        watched.page.emulate_media(color_scheme=scheme)
        page = watched.open("/", "#page .head")
        page.click("header a:text-is('Storms')")
        page.wait_for_selector("h1:text-is('Storms')")
        page.wait_for_selector(PLOT)
        assert "⚑ v2.31" in page.locator(".annotation-text").all_text_contents()
        page.click("table a:text-is('2 groups together')")
        page.wait_for_selector("h1:text-is('Storm: 2 groups together')")
        assert page.url.endswith("storm=together")
        page.wait_for_selector(PLOT)
        ink = page.locator(".annotation-text").first.evaluate("e => getComputedStyle(e).fill")
        paper = page.evaluate("getComputedStyle(document.querySelector('.panel')).backgroundColor")
        assert ink != paper
        page.locator(".annotation-text:text-is('⚑ v2.31')").hover()
        page.wait_for_selector(".hovertext >> text=the whole cluster")
        page.click(".panel table a:text-is('generation 5')")
        page.wait_for_selector("h1:text-is('Rebalance to generation 5')")
        assert "It began 3 s after the deploy “v2.31”." in page.inner_text(".sentence")


def test_a_click_on_a_storm_opens_it(watched) -> None:
    page = watched.open("/storms?from=now-1h", PLOT)
    bar = page.locator(".barlayer .point path").last.bounding_box()
    page.mouse.move(bar["x"] + bar["width"] * 0.8, bar["y"] + bar["height"] / 2)
    page.wait_for_selector(".hovertext")
    page.mouse.click(bar["x"] + bar["width"] * 0.8, bar["y"] + bar["height"] / 2)
    page.wait_for_selector("h1:text-is('Storm: billing-worker')")


def test_hostile_text_stays_text(window, tmp_path, now) -> None:
    rows = sample.hostile(now, HOSTILE)
    (storm, _), printed = sample.storms(now)["storms"], {"cluster": sample.CLUSTER, "kind": "deploy"}
    odd = [{"attribute": t, "value": t, "share": 1.0, "baseline": 0.5, "lift": 2.0} for t in HOSTILE]
    rows["storms"] = [
        storm | {"group_ids": HOSTILE, "explanation": t, "storm_id": t, "differences": odd} for t in HOSTILE
    ]
    rows["marks"] = [
        printed
        | {"marked_at": now - (20 + 2 * i) * 60_000, "text": t, "group_id": t if i % 2 else None, "marked_by": t}
        for i, t in enumerate(HOSTILE)
    ]
    sample.write(tmp_path / "hostile", rows)
    with serving(tmp_path / "hostile") as address, window.page(address, (1200, 900)) as watched:
        watched.page.add_init_script("window.alert = () => { window.__fired = (window.__fired || 0) + 1; }")
        state = parse("/storms", "?from=all")
        group = state.href("group", cluster=sample.CLUSTER, group=HOSTILE[0])
        storm_page = state.href("storms", storm=HOSTILE[0])
        for path in ("/storms?from=all", storm_page, "/?from=all", group):
            page = watched.open(path, PLOT)
            assert CLEAN == page.evaluate(FOREIGN), path
            assert page.locator(".annotation-text").count(), path
