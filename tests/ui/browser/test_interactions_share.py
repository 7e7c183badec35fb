"""Links, text and tables that leave a page are those it shows, and no untrusted name becomes a formula or markup."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import urlopen

import pytest

from testing import sample
from testing.serving import serving
from tests.ui.browser.test_browser import HOSTILE, PLOT

GROUP = "/group?cluster=prod-eu&group=billing-worker&from=now-6h"
HOUR = 3_600_000


def copied(page):
    page.wait_for_selector("#notification:text-matches('copied')")
    return page.evaluate("navigator.clipboard.readText()")


def saved(page, label):
    page.keyboard.press("e")
    with page.expect_download() as download:
        page.click(f"dialog [aria-label='{label}']")
    page.keyboard.press("Escape")
    path = Path(download.value.path())
    return download.value.suggested_filename, path.read_bytes().decode("utf-8-sig")


def test_a_copied_link_shows_the_same_for_ever(reader):
    page = reader.open(GROUP + "&tz=Asia/Kolkata", PLOT)
    described = page.locator(".moves")
    page.keyboard.press("l")
    link = copied(page)
    asked = {k: v[0] for k, v in parse_qs(urlsplit(link).query).items()}
    assert 6 * HOUR == int(asked["to"]) - int(asked["from"])
    assert abs(time.time() * 1000 - int(asked["to"])) < 120_000
    assert ("billing-worker", "Asia/Kolkata") == (asked["group"], asked["tz"])
    assert link.startswith(f"{reader.address}/group?")
    page.goto(link)
    page.wait_for_selector(PLOT)
    assert asked["from"] == described.get_attribute("data-start")


def test_a_range_of_a_group_is_saved_as_a_trace(reader):
    page = reader.open(GROUP, PLOT)
    with page.expect_download() as download:
        page.click("a:text-is('Trace')")
    trace = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert ("billing-worker", True) == (trace["otherData"]["group"], len(trace["traceEvents"]) > 100)


def test_a_page_without_a_range_of_its_own_has_a_link_too(reader):
    page = reader.open("/rebalance?cluster=prod-eu&group=billing-worker&generation=5&from=now-24h", PLOT)
    page.click("[data-key=l]")
    asked = {k: v[0] for k, v in parse_qs(urlsplit(copied(page)).query).items()}
    assert 24 * HOUR == int(asked["to"]) - int(asked["from"])
    assert "zoom" not in asked


def test_the_words_of_a_page_are_markdown(reader):
    page = reader.open("/rebalance?cluster=prod-eu&group=billing-worker&generation=5", PLOT)
    page.keyboard.press("e")
    page.click("dialog >> text=Copy as Markdown")
    text = copied(page)
    assert text.startswith("# Rebalance to generation 5\n\nFleet / prod-eu / billing-worker\n")
    assert "12 of 12 partitions stopped" in text
    assert "\n## Cost\n" in text
    assert re.search(r"^- Partition-seconds lost: ≈ 559 \(90 %: 558\N{EN DASH}560\)$", text, re.MULTILINE)
    assert text.rstrip().endswith(f"<{page.url}>")


@pytest.mark.parametrize("path", ["/", GROUP, "/rebalance?cluster=prod-eu&group=billing-worker&generation=5", "/storms",
                                  "/reassignments", "/advice", "/health"])  # fmt: skip
def test_every_page_has_words_and_gives_every_table_it_shows(reader, path):
    page = reader.open(path)
    page.wait_for_timeout(500)
    assert page.evaluate("window.regroup.summary()").startswith("# ")
    tables = page.evaluate("window.regroup.tables()")
    shown = page.locator("#page table").count() + page.locator("#page .grid").count()
    assert shown == len(tables)
    assert all(table["name"] for table in tables)
    for table in tables:
        assert len(set(table["head"])) == len(table["head"])
        assert all(table["head"]), table["head"]
        assert {len(table["head"])} >= {len(row) for row in table["rows"]}


def test_a_table_is_saved_as_it_is_shown(reader):
    page = reader.open(GROUP, PLOT)
    name, text = saved(page, "CSV of What happened: States")
    assert "regroup-what-happened-states.csv" == name
    head, *rows = csv.reader(io.StringIO(text))
    assert ["From (UTC)", "To (UTC)", "State", "Evidence", "Generation", "Proof"] == head
    shown = (
        page.locator("#page details table")
        .first.locator("tbody tr")
        .evaluate_all("rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")
    )
    assert shown == rows
    name, text = saved(page, "JSON of What happened: States")
    made = json.loads(text)
    assert ("billing-worker", "What happened: States", "UTC") == (made["page"], made["table"], made["zone"])
    assert shown == [[str(value) for value in row.values()] for row in made["rows"]]


def test_a_grid_is_saved_in_the_order_the_reader_gave_it(reader):
    page = reader.open("/?from=now-6h", PLOT)
    page.wait_for_selector(".ag-row")
    page.click(".ag-header-cell-text:text-is('Group')")
    _, text = saved(page, "CSV of Groups")
    head, *rows = csv.reader(io.StringIO(text))
    assert [
        "Group",
        "Cluster",
        "State now",
        "Rebalances",
        "Lost partition-seconds",
        "p95 rebalance",
        "Last change (UTC)",
    ] == head
    names = [row[0] for row in rows]
    assert sorted(names) == names
    assert len(names) == len(set(names)) > 2
    _, text = saved(page, "JSON of Groups")
    assert names == [row["Group"] for row in json.loads(text)["rows"]]


@pytest.mark.parametrize(
    "request_", ["", "null", "[]", "{}", '{"sortModel": 5, "filterModel": [1]}', '{"startRow": -1}']
)
def test_an_empty_request_and_any_json_get_all_rows_of_the_fleet(address, request_):
    with urlopen(f"{address}/rows?from=now-6h&request={quote(request_)}") as response:
        found = json.load(response)
    assert found["rowCount"] == len(found["rowData"]) > 2
    with urlopen(f"{address}/rows?q=billing&tz=Asia/Kolkata") as response:
        assert ["billing-worker"] == [row["group"] for row in json.load(response)["rowData"]]


def test_no_cell_is_a_formula_and_json_is_as_it_was(reader):
    page = reader.open("/", PLOT)
    bad = [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        '=HYPERLINK("http://evil","x")',
        'a"b',
        "a,b",
        "a\nb",
        "",
        "x=1",
    ]
    text = page.evaluate("rows => window.regroup.csv(['h'], rows)", [[each] for each in bad])
    _, *rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    assert [[_defused(each)] for each in bad] == rows
    assert all(
        re.fullmatch(r'"([^"]|"")*"', cell)
        for cell in text.removeprefix("\ufeff").split("\r\n")
        if "\r" not in cell and cell
    )


def _defused(text: str) -> str:
    """Return the text with an apostrophe before each formula, wherever a spreadsheet may see a field begin."""
    begun = re.sub(r"""([,;|"'\t\r\n]|^)(?=["\s]*[=+\-@])""", r"\1'", text)
    return f"'{begun}" if re.match(r"[\t\r\n]", begun) else begun


PAYLOADS = ("=cmd|'/c calc'!A1", "+1", "-1+1", "@SUM(A1)", "\uff1d1+1", '"=1+1"', '""=1', " =1", "\t=1", "\0=1")
BEFORE = (
    "",
    "a;",
    "a\t",
    "a|",
    "a,",
    "a\n",
    "a\r\n",
    "a\r",
    '";',
    '"',
    '"\n',
    'a;"',
    "a;;",
    "';",
    "'",
    "\u2028",
    "a\v",
)


def test_no_part_of_a_cell_is_a_formula_whatever_separates_cells(reader):
    page = reader.open("/", PLOT)
    bad = [[before + payload, "x", before + payload] for before in BEFORE for payload in PAYLOADS]
    text = page.evaluate("rows => window.regroup.csv(['h', 'x', 'y'], rows)", bad).removeprefix("\ufeff")
    for separator in ",;\t|":
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting):
                for field in row:
                    seen = field.strip("\0 \t\r\n\v").lstrip('"')
                    assert not seen.lstrip("\0 \t").startswith(("=", "+", "-", "@", "\uff1d")), (separator, field)
    assert [["a;b", "1,5", 'say "a"', "a-b", "x=1"]] == list(
        csv.reader(
            io.StringIO(
                page.evaluate("rows => window.regroup.csv([], rows)", [["a;b", "1,5", 'say "a"', "a-b", "x=1"]])
            )
        )
    )[1:]


def test_no_name_is_markup_in_markdown(window, tmp_path, now):
    from markdown_it import MarkdownIt

    render = MarkdownIt("commonmark", {"linkify": False}).render
    sample.write(tmp_path, sample.hostile(now, HOSTILE))
    with serving(tmp_path) as address, window.page(address) as watched:
        page = watched.open("/?from=all", PLOT)
        for text in HOSTILE:
            made = page.evaluate("text => window.regroup.markdown(text)", text)
            found = render(made)
            assert not re.search(r"<(?!/?p>)", found), (text, made, found)
            plain = " ".join(text.split())
            assert (
                plain.replace("\0", "\ufffd") == _unescaped(found.removeprefix("<p>").removesuffix("</p>\n")).strip()
            ), text
        _, saved_text = saved(page, "CSV of Groups")
        assert "'=1+1" in {row[0] for row in csv.reader(io.StringIO(saved_text))}


def _unescaped(text):
    from html import unescape

    return unescape(text)
