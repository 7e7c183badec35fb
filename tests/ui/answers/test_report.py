"""`regroup report`: sums of the tables, compared only where everything was recorded, in documents without markup."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from dashboards.answers.blocks import Heading, Paragraph, TextTable, html, markdown
from dashboards.answers.report import blocks, report, report_values
from dashboards.answers.weekly import in_zone, of_week
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.teams import Teams
from dashboards.urlstate import Window
from jobs.cli import main
from testing import sample
from tests.ui.pages.hostile import STRINGS

STALE = {"stale_ms": 120_000}
ELEMENTS = {
    *["html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td"]
}
BEGIN = {"markdown": "# Rebalances from", "html": "<!doctype html>", "json": '{\n  "from": '}


class Page(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)


def elements(text) -> set[str]:
    page = Page()
    page.feed(text)
    return page.elements


def test_the_report_has_the_sums_of_the_tables(clusters):
    lake = LocalLake(clusters)
    seen = Store(lake).span()
    window = Window(seen.first_at, seen.last_at + 1, is_live=False)
    found = report(lake, window)
    assert Store(lake).totals(window) == pytest.approx(found.totals)
    assert found.totals["rebalances"] >= sum(row["rebalances"] for row in found.verdicts) > 0
    lost = [group.row["lost"] for group in found.groups]
    assert sorted(lost, reverse=True) == lost
    assert min(lost) > 0
    values = json.loads(json.dumps(report_values(found, now_ms=seen.last_at, **STALE)))
    assert found.totals == values["totals"]
    assert [group.row["group_id"] for group in found.groups] == [group["group_id"] for group in values["groups"]]
    assert values["before"]["totals"] is None


def test_a_number_of_storms_that_was_cut_is_not_given_as_exact(tmp_path, now):
    (one, *_) = sample.storms(now)["storms"]
    sample.write(
        tmp_path, sample.merge({}, sample.everyday(now)) | {"storms": [one | {"storm_id": f"s{n}"} for n in range(201)]}
    )
    found = report(LocalLake(tmp_path), Window(now - 86_400_000, now, is_live=False))
    assert "At least 200 storms." in markdown(blocks(found, now_ms=now, **STALE))
    assert not report_values(found, now_ms=now, **STALE)["has_all_storms"]


def test_a_range_after_recorded_ones_is_compared_with_them(clusters):
    lake = LocalLake(clusters)
    seen = Store(lake).span()
    middle = (seen.first_at + seen.last_at) // 2
    found = report(lake, Window(middle, middle + (middle - seen.first_at), is_live=False))
    assert found.has_before
    text = markdown(blocks(found, now_ms=seen.last_at, **STALE))
    before = Store(lake).totals(Window(seen.first_at, middle, is_live=False))
    assert f"before, {before['rebalances']} rebalances lost " in text
    assert "| not known | " not in text.split("## Groups")[0].replace("| not known | not known |", "")


def test_what_was_not_recorded_is_said_and_never_compared(clusters):
    lake = LocalLake(clusters)
    seen = Store(lake).span()
    week = Window(seen.last_at - 7 * 86_400_000, seen.last_at + 600_000, is_live=False)
    text = markdown(blocks(report(lake, week), now_ms=seen.last_at + 600_000, **STALE))
    assert "not everything was recorded, so there is no comparison" in text
    assert "10 min old: nothing is known of the time since" in text
    assert "nothing is known of the time before" in text
    after = Window(seen.last_at + 1_000, seen.last_at + 2_000, is_live=False)
    assert "Nothing is known of this range." in markdown(blocks(report(lake, after), now_ms=after.end, **STALE))


@pytest.mark.parametrize("kind", BEGIN)
def test_the_command_writes_each_kind(clusters, capsys, kind):
    assert main(["report", "--days", "366", "--format", kind, "--warehouse", str(clusters)]) in (0, 1)
    assert capsys.readouterr().out.startswith(BEGIN[kind])


def test_a_number_of_days_out_of_range_is_one_sentence(clusters, capsys):
    assert 2 == main(["report", "--days", "0", "--warehouse", str(clusters)])
    assert "--days 0 is out of range: it can be 1 to 366." in capsys.readouterr().err


def test_hostile_names_make_no_markup(tmp_path, now):
    sample.write(tmp_path, sample.merge({}, sample.everyday(now), sample.hostile(now, STRINGS[::9])))
    found = report(LocalLake(tmp_path), Window(now - 86_400_000, now + 1, is_live=False))
    assert elements(html(blocks(found, now_ms=now, **STALE), "Rebalances")) <= ELEMENTS
    for line in markdown(blocks(found, now_ms=now, **STALE)).splitlines():
        if line.startswith("|"):
            assert len(re.sub(r"\\.", "", line).split("|")) in (5, 8, 9), line


@pytest.mark.parametrize("text", STRINGS[::40])
def test_any_text_stays_text(text):
    document = [Heading(1, text), Paragraph(text), TextTable(("a", "b"), [(text, text)])]
    assert elements(html(document, text)) <= ELEMENTS
    lines = markdown(document).splitlines()
    assert 7 == len(lines)
    bare = [re.sub(r"\\.", "", line) for line in lines]
    assert not [line for line in bare if re.search(r"[<`\[*]", line)]
    assert bare[-1].count("|") == 3


TEAMS = Teams.of({"imports": ["imports-*"], "rest": [{"groups": "*", "clusters": "restarts"}]})


def whole(lake) -> Window:
    seen = Store(lake).span()
    return Window(seen.first_at, seen.last_at + 1, is_live=False)


def test_teams_and_clusters_add_up_and_a_team_is_reported_alone(clusters):
    lake = LocalLake(clusters)
    found = report(lake, whole(lake), teams=TEAMS)
    values = report_values(found, now_ms=0, **STALE)
    assert {"imports", "rest", None} == {row["team"] for row in values["teams"]}
    for split in (values["teams"], values["clusters"]):
        assert sum(row["lost"] for row in split) == pytest.approx(sum(row["lost"] for row in found.verdicts))
        assert sum(row["rebalances"] for row in split) == sum(row["rebalances"] for row in found.verdicts)
    alone = report(lake, whole(lake), teams=TEAMS, team="imports")
    assert {"imports-joiner"} == {group.row["group_id"] for group in alone.groups}
    of_team = next(row for row in values["teams"] if row["team"] == "imports")
    assert sum(row["lost"] for row in alone.verdicts) == pytest.approx(of_team["lost"])
    assert alone.by_team is None
    assert alone.totals["lost"] == pytest.approx(alone.groups[0].row["lost"]) != 0
    assert all("imports-joiner" in storm["group_ids"] for storm in alone.storms)
    others = report(lake, whole(lake), teams=TEAMS, team="none")
    rest = report(lake, whole(lake), teams=TEAMS, team="rest")
    parts = (alone, others, rest)
    assert found.totals["lost"] == pytest.approx(sum(part.totals["lost"] for part in parts))
    assert found.totals["rebalances"] == sum(part.totals["rebalances"] for part in parts)
    assert "Rebalances of team imports from " in markdown(blocks(alone, now_ms=0, **STALE))


@pytest.fixture
def settings(tmp_path):
    file = tmp_path / "regroup.toml"
    file.write_text('[teams]\nimports = ["imports-*"]\n')
    return file


def asked(capsys, clusters, settings, *arguments):
    code = main(["report", "--format", "json", "--warehouse", str(clusters), "--config", str(settings), *arguments])
    printed = capsys.readouterr()
    return code, printed.err or json.loads(printed.out)


def test_a_calendar_week_is_one_option(clusters, settings, capsys):
    code, found = asked(capsys, clusters, settings, "--week", "2026-W47")
    assert (0, "2026-W47") == (code, found["week"])
    assert ("2026-11-16T00:00:00.000+00:00", "2026-11-23T00:00:00.000+00:00") == (found["from"], found["to"])
    assert "2026-11-09T00:00:00.000+00:00" == found["before"]["from"]
    code, found = asked(capsys, clusters, settings, "--week", "2026-W47", "--zone", "Asia/Kolkata", "--team", "imports")
    assert "2026-11-15T18:30:00.000+00:00" == found["from"]
    assert {"imports-joiner"} == {group["group_id"] for group in found["groups"]}
    _, last = asked(capsys, clusters, settings, "--week")
    assert last["week"] == of_week("1", time.time_ns() // 1_000_000).name


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--week", "47"), None),
        (("--week", "521"), "'521' names no week: write a name such as 2026-W47"),
        (("--week", "2026-W54"), "names no week"),
        (("--week", "000000000999999999999"), "names no week"),
        (("--week", "9999-W01"), "names no week"),
        (("--week", "2200-W01"), "The week 2200-W01 has not begun."),
        (("--zone", "Mars"), "There is no zone 'Mars'"),
        (("--team", "nobody"), "The settings have no team 'nobody': they have imports."),
    ],
)
def test_what_cannot_be_reported_is_one_sentence(clusters, settings, capsys, arguments, expected):
    code, found = asked(capsys, clusters, settings, *arguments)
    if expected is None:
        assert (1, False) == (code, found["is_observed"])
    else:
        assert 2 == code
        assert expected in found


def test_this_week_is_compared_with_the_same_part_of_the_week_before():
    now_ms = 1_795_700_000_000
    found = of_week("0", now_ms)
    assert found.window.end == now_ms
    assert found.before.width == found.window.width < 7 * 86_400_000
    assert found.window.start - found.before.start == 7 * 86_400_000


def test_the_week_before_ends_before_one_in_which_clocks_are_set_back():
    with in_zone("Europe/Berlin"):
        found = of_week("0", round(datetime(2026, 10, 25, 22, 30, tzinfo=UTC).timestamp() * 1000))
    assert "2026-W43" == found.name
    assert found.before.end == found.window.start


def test_what_is_not_analyzed_is_in_no_sum_by_cause_and_is_said(tmp_path, now):
    rows = sample.everyday(now)
    sample.write(tmp_path, {**rows, "verdicts": rows["verdicts"][:1]})
    lake = LocalLake(tmp_path)
    found = report(lake, whole(lake))
    text = markdown(blocks(found, now_ms=now, **STALE))
    assert found.pending.rebalances > 1
    assert f"{found.pending.rebalances} rebalances are not analyzed yet, in which" in text
