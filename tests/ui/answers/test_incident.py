"""`regroup incident`: a document has the values of the pages, with bounds and grades, and any name stays text in it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from html import unescape
from html.parser import HTMLParser

import pytest

from dashboards.answers.blocks import Code, Drawing, Heading, Items, Links, Pairs, html, markdown
from dashboards.answers.incidents.document import as_html, as_markdown, values
from dashboards.answers.incidents.of_episode import of_episode
from dashboards.answers.incidents.of_rebalance import of_rebalance
from dashboards.answers.incidents.of_storm import of_storm
from dashboards.answers.why import NoAnswerError, why, why_generation
from dashboards.figures.svg import svg
from dashboards.figures.waterfall import waterfall
from dashboards.lake.lake import LocalLake
from dashboards.pages import rebalance, storm
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from testing import sample
from tests.ui.pages.hostile import STRINGS
from tests.ui.pages.test_share_groups import CLUSTER as SHARE_CLUSTER
from tests.ui.pages.test_share_groups import NOW, share_group
from tests.ui.reading import words

GROUP = "billing-worker"
URL = "https://regroup.example"
FRESH = {"stale_ms": 10**12}
TEXT = ("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd", "a")
DRAWN = ("figure", "svg", "defs", "pattern", "path", "rect", "text")
TABLES = ("table", "thead", "tbody", "tr", "th", "td", "pre", "code")
ELEMENTS = {*TEXT, *DRAWN, *TABLES}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "scope", "href", "rel", "xmlns", "viewbox", "role", "id"),
    *("x", "y", "width", "height", "d", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity"),
    *("fill-opacity", "opacity", "transform", "text-anchor", "font-family", "font-size", "patternunits"),
    "patterntransform",
}


class Page(HTMLParser):
    """The elements, attributes and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value for name, value in attrs if name == "href"]


def assert_harmless(text: str) -> None:
    page = Page(text)
    assert page.elements <= ELEMENTS, page.elements - ELEMENTS
    assert page.attributes <= ATTRIBUTES, page.attributes - ATTRIBUTES
    assert not [each for each in page.addresses if not each.startswith(f"{URL}/")]
    assert not re.search(r"url\((?!#hatch\))", text.replace(unescape(text), ""))


@pytest.fixture
def store(warehouse, lake) -> Store:
    return Store(lake(warehouse))


def test_the_document_of_a_rebalance_says_what_its_page_says(store, now) -> None:
    found = of_rebalance(store.lake, why_generation(store.lake, GROUP, 5, cluster=sample.CLUSTER))
    page = words(
        rebalance.render(store, parse("/rebalance", f"?cluster={sample.CLUSTER}&group={GROUP}&generation=5"), now), ""
    )
    for text in (found.story[0], *(fact.text for section in found.sections for fact in section.facts)):
        assert text in page, text
    for section in found.sections:
        for row in section.rows:
            assert all(str(cell) in page for cell in row)
    document = as_markdown(found, URL, now_ms=now, **FRESH)
    order = [line[3:] for line in document.splitlines() if line.startswith("## ")]
    assert order == [
        "Verdict", "What happened", "Verdict in detail", "Why it began", "Members",
        "What the members measured", "Cost", "What to change",
        "Timeline", "Pages", "Capture",
    ]  # fmt: skip
    assert "It was the broker (observed). " in document
    assert "10.0.4.13" in document
    assert f"<{URL}/rebalance?cluster={sample.CLUSTER}&group={GROUP}&incarnation=0&generation=5>" in document


def test_the_document_of_a_storm_says_what_its_page_says(store, now) -> None:
    found = of_storm(store.lake, "together")
    page = words(storm.render(store, parse("/storms", "?storm=together"), now), "")
    for section in found.sections:
        for fact in section.facts:
            assert fact.text in page, fact
    assert found.story[0] in page
    document = as_markdown(found, URL, now_ms=now, **FRESH)
    for text in ("v2.31", "835 (700", "10.0.4.13", "broker 3 gets new disks", "nowhere else", "billing-worker"):
        assert text in document, text
    assert "The storm is open, as last seen" in as_markdown(of_storm(store.lake, "alone"), URL, now_ms=now, **FRESH)


def test_every_rebalance_and_episode_of_recorded_clusters_has_a_document(clusters, now) -> None:
    store = Store(LocalLake(clusters))
    seen = store.span()
    whole = Window(seen.first_at, seen.last_at + 1, is_live=False)
    made = 0
    for group in store.fleet(whole).rows:
        for row in store.generations(group["cluster"], group["group_id"], whole).rows[::7]:
            key = {"cluster": group["cluster"], "incarnation": row["incarnation"]}
            found = why_generation(store.lake, group["group_id"], row["generation_id"], **key)
            documents = [of_rebalance(store.lake, found)]
            if found.found.episode is not None:
                documents.append(of_episode(store.lake, found))
            for each in documents:
                assert_harmless(as_html(each, URL, now_ms=now, **FRESH))
                assert as_markdown(each, URL, now_ms=now, **FRESH)
                assert {line.evidence for line in each.timeline} <= {"observed", "bounded", "inferred", "announced"}
                assert [*each.timeline] == sorted(each.timeline, key=lambda line: line[1::-1])
                made += 1
    assert made > 20


def test_an_episode_has_all_its_rebalances_and_its_sums(clusters, now) -> None:
    store = Store(LocalLake(clusters))
    found = why(store.lake, "imports-joiner")
    episode = found.found.episode
    document = of_episode(store.lake, found)
    listed = [line for line in document.timeline if re.match(r"(generation|generations|epoch) ", line.text)]
    assert episode["generations"] == len(listed) > 1
    made = json.loads(json.dumps(values(document, URL, now_ms=now, **FRESH)))
    assert ("episode", episode["lost_resource_seconds"]) == (made["kind"], made["episode"]["lost_resource_seconds"])
    assert made["members"]


def test_json_has_the_values_of_the_tables(store, now) -> None:
    made = json.loads(json.dumps(values(of_storm(store.lake, "together"), URL, now_ms=now, **FRESH)))
    row = store.storm("together")
    for name in ("storm_id", "groups", "group_ids", "lost_resource_seconds", "suspected_cause", "evidence"):
        assert row[name] == made["storm"][name]
    assert f"{URL}/storms?storm=together" == made["pages"]["This storm"]
    assert made["members"][0].keys() >= {"group_id", "member_id", "client_host"}


def test_old_data_never_looks_like_the_present(store, now) -> None:
    found = of_rebalance(store.lake, why(store.lake, GROUP))
    old = as_markdown(found, URL, now_ms=found.seen.until[sample.CLUSTER] + 7_200_000, stale_ms=120_000)
    assert "2 h old: what happened since is not known." in old
    assert (
        "is not known"
        not in as_markdown(found, URL, now_ms=found.seen.until[sample.CLUSTER], stale_ms=1).split("##")[0]
    )


def test_the_cost_of_a_share_group_is_not_observed_and_never_none(tmp_path) -> None:
    store = share_group(tmp_path)
    found = of_rebalance(store.lake, why(store.lake, "share", cluster=SHARE_CLUSTER))
    made = values(found, URL, now_ms=NOW, **FRESH)
    assert "not observed" == made["cost"]["Resource-seconds lost"]
    assert "It has no verdict" in found.verdict
    assert not found.is_answered
    assert "seconds lost" not in as_markdown(found, URL, now_ms=NOW, **FRESH).replace("Resource-seconds lost", "")


def test_hostile_names_stay_text_in_markdown_html_and_the_drawing(tmp_path, now) -> None:
    sample.write(tmp_path, sample.merge({}, sample.hostile(now, STRINGS)))
    lake = LocalLake(tmp_path)
    made = 0
    for name in STRINGS[::11]:
        with suppress(NoAnswerError):
            found = of_rebalance(lake, why(lake, name))
            document = as_html(found, URL, now_ms=now, **FRESH)
            assert_harmless(document)
            assert not [c for c in document if (ord(c) < 32 and c != "\n") or ord(c) in (0x7F, 0x202E, 0x2066)]
            assert_plain(as_markdown(found, URL, now_ms=now, **FRESH))
            assert json.dumps(values(found, URL, now_ms=now, **FRESH))
            made += 1
    assert made > 20


def assert_plain(text: str) -> None:
    """Assert that no name contains markup: all except our own tables, lists, headings and addresses is escaped."""
    for line in text.splitlines():
        bare = re.sub(r"\\.", "", line)
        bare = re.sub(rf"<{URL}/[^<>\s]*>$", "", bare)
        assert not re.search(r"[<`*$~&@]|\]\(|://|www\.", bare), line
        if bare.startswith("|"):
            assert bare.count("|") in (5, 9, 10), line


@pytest.mark.parametrize("text", STRINGS[::40])
def test_any_text_stays_text_in_every_block(text) -> None:
    figure = {
        "data": [],
        "layout": {
            "height": 100, "margin": {"l": 9, "r": 9, "t": 9, "b": 9}, "xaxis": {"range": [0, 1]},
            "yaxis": {"range": [1, 0], "tickvals": [0], "ticktext": [text]},
        },
    }  # fmt: skip
    plain = text.replace("\n", " ").replace("\x00", "")
    document = [Heading(1, text), Items([text]), Pairs([(text, text)]), Code(plain), Links([(text, text)])]
    document += [Links([("a", text)], is_file=True), Drawing(svg(figure, text), text)]
    page = Page(html(document, text))
    assert page.elements <= ELEMENTS
    assert page.addresses == []
    written = markdown(document)
    fence = re.search(r"^(`{3,})\n(.*)\n\1$", written, re.MULTILINE)
    assert fence[2] == plain
    assert_plain(written.replace(fence[0], ""))


def test_the_drawing_has_the_bars_of_the_figure_within_it(store) -> None:
    found = store.rebalance(sample.CLUSTER, GROUP, 0, 5)
    figure = waterfall(found)
    bars = sum(len(trace["x"]) for trace in figure["data"] if trace["type"] == "bar")
    hatched = sum(len(t["x"]) for t in figure["data"] if t["type"] == "bar" and "pattern" in t["marker"])
    drawn = svg(figure, "a", [("stopped", "everybody stopped")])
    assert bars + hatched + 1 == drawn.count("<rect")
    places = [float(x) for x in re.findall(r'<rect x="([-0-9.]+)"', drawn)]
    assert min(places) >= 0
    assert max(places) <= 1_060
    for label in figure["layout"]["yaxis"]["ticktext"]:
        assert unescape(label) in unescape(drawn)
