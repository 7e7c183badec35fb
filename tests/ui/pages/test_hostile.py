"""Names of groups, members, clients, hosts and topics stay text in every component and figure that the server makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

from dashboards.app import page
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.urlstate import State
from testing import sample
from tests.ui.pages.hostile import STRINGS

OURS = re.compile(r"</?(b|br|extra|i|sub|sup)>|%\{(customdata\[\d\]|x|y|z|text)\}")
"""The elements and formulas that our own figures use in Plotly's subset of HTML."""
ALIEN = ("Markdown", "DangerouslySetInnerHTML", "Iframe", "Script", "Img", "Embed", "ObjectEl")


@pytest.fixture(scope="module")
def store(tmp_path_factory, now) -> Store:
    folder = tmp_path_factory.mktemp("five hundred")
    sample.write(folder, sample.hostile(now, STRINGS))
    return Store(LocalLake(folder))


def parts(node: Any) -> Iterator[dict[str, Any]]:
    """Every component of a page as it goes to the browser."""
    if isinstance(node, list):
        for each in node:
            yield from parts(each)
    elif isinstance(node, dict) and "props" in node:
        yield node
        yield from parts(node["props"].get("data-rows", node["props"].get("children")))


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, list | dict):
        for each in node.values() if isinstance(node, dict) else node:
            yield from strings(each)


def assert_harmless(printed: str) -> None:
    for part in parts(json.loads(printed)):
        props = part["props"]
        assert part["type"] not in ALIEN
        assert not any(key.startswith("dangerously") and props[key] for key in props), props
        if "href" in props:
            assert props["href"].startswith(("/", "?")), props["href"]
            assert not props["href"].startswith("//")
        if part["type"] == "Graph":
            for text in strings({k: v for k, v in props["figure"].items() if k != "layout"}):
                assert_literal(text)
            for note in props["figure"]["layout"].get("annotations", ()):
                assert_literal(note["text"])


def assert_literal(text: str) -> None:
    """Assert that Plotly finds no foreign element and no formula in the text. It does not draw our own addresses."""
    if text.startswith("/") and "?" in text:
        return
    rest = OURS.sub("", text)
    assert "<" not in rest, text
    assert "$" not in rest, text


def test_there_are_five_hundred_of_them() -> None:
    assert len(STRINGS) >= 500


@pytest.mark.parametrize("name", ["group", "instants", "rebalance"])
def test_no_name_becomes_an_element_a_link_or_a_formula(store, now, name) -> None:
    more: dict[str, object] = {
        "group": {},
        "instants": {"at": now - 60_000, "against": now - 34 * 60_000},
        "rebalance": {"incarnation": 0, "generation": 2},
    }[name]
    where = "group" if name == "instants" else name
    # A page of two instants only adds panels of the same tables, and takes ten times as long.
    for text in STRINGS[::5] if name == "instants" else STRINGS:
        address = State(page=where, start="all").href(where, cluster=sample.CLUSTER, group=text, **more)
        path, _, search = address.partition("?")
        made, _, _ = page(store, path, f"?{search}", None, now)
        printed = json.dumps(made, cls=PlotlyJSONEncoder)
        assert "Something went wrong" not in printed, text
        assert ("No such generation" if name == "rebalance" else "hold no group of this name") not in printed, text
        assert_harmless(printed)


@pytest.mark.parametrize("path", ["/", "/storms", "/deploys", "/advice", "/reassignments", "/health"])
def test_pages_of_many_names_hold_them_as_text(store, now, path) -> None:
    for search in ("?from=all", "?from=all&skip=30", *(f"?from=all&q={text}" for text in ("script", "alert", "$"))):
        made, _, _ = page(store, path, search, None, now)
        printed = json.dumps(made, cls=PlotlyJSONEncoder)
        assert "Something went wrong" not in printed
        assert_harmless(printed)
