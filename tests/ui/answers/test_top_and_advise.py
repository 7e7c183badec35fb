"""`regroup top` and `regroup advise` answer with the values of the pages, and say what they do not know."""

from __future__ import annotations

import json

import pytest
from deltalake import write_deltalake

from dashboards.answers.advise import advise, advise_text, advise_values
from dashboards.answers.group_advice import recommended
from dashboards.answers.top import top, top_text, top_values
from dashboards.answers.why import NoAnswerError
from dashboards.answers.written import columns
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.urlstate import SPANS, Window
from jobs.cli import main
from jobs.command_line.answer_arguments import RANGES
from pipelines.arrow_types import stored
from schemas.silver import GROUPS
from testing import sample
from testing.alerts.rows import row
from tests.ui.pages.hostile import STRINGS

OLD = {"stale_ms": 120_000}
NOT_KNOWN = "what happened since is not known"


def test_the_worst_groups_are_those_of_the_fleet_page(clusters, now):
    store = Store(LocalLake(clusters))
    found = top(LocalLake(clusters), None, 3)
    whole = Window(found.seen.first_at, found.seen.last_at + 1, is_live=False)
    rows = store.fleet(whole).rows
    assert [each["group_id"] for each in rows[:3]] == [each["group_id"] for each in found.groups]
    # DuckDB adds in the order in which its threads read.
    assert store.totals(whole) == pytest.approx(found.totals)
    text = top_text(found, now_ms=found.seen.last_at, **OLD)
    assert [each["group_id"] for each in rows[:3]] == [line.split()[0] for line in text.splitlines()[-4:-1]]
    assert f"and {len(rows) - 3} more groups" in text
    assert text.count(NOT_KNOWN) == sum(found.seen.last_at - until > 120_000 for until in found.seen.until.values())
    assert len(found.seen.until) == top_text(found, now_ms=now + 10**10, **OLD).count(NOT_KNOWN)


def test_json_of_the_worst_groups_has_the_values_of_the_tables(clusters):
    found = top(LocalLake(clusters), None, 2)
    values = json.loads(json.dumps(top_values(found, now_ms=found.seen.last_at, **OLD)))
    for each, value in zip(found.groups, values["groups"], strict=True):
        assert (each["group_id"], each["lost"], each["rebalances"]) == (
            value["group_id"],
            value["lost"],
            value["rebalances"],
        )
    assert found.totals == values["totals"]
    assert values["is_observed"]


def test_a_range_after_the_newest_record_is_not_quiet_but_unknown(clusters, capsys):
    assert 1 == main(["top", "--last", "15m", "--warehouse", str(clusters)])
    said = capsys.readouterr().out
    assert "Nothing is known of this range: records are of 20" in said
    assert "rebalance" not in said


def test_a_range_before_the_first_record_is_not_quiet_but_unknown(clusters):
    before = Window(0, top(LocalLake(clusters), None, 1).seen.first_at, is_live=False)
    found = top(LocalLake(clusters), before, 3)
    values = top_values(found, now_ms=before.end, **OLD)
    assert not values["is_observed"]
    assert values["totals"] is None
    assert not values["groups"]
    assert "0 rebalances" not in top_text(found, now_ms=before.end, **OLD)


def test_groups_that_were_rebalancing_before_the_range_have_no_sums_in_it(clusters):
    last = top(LocalLake(clusters), None, 1).seen.last_at
    found = top(LocalLake(clusters), Window(last + 1, last + 60_000, is_live=False), 50)
    values = top_values(found, now_ms=last, **OLD)
    assert values["groups"]
    assert {(None, None)} == {(row["rebalances"], row["lost"]) for row in values["groups"]}


def test_the_ranges_are_those_of_the_pages():
    assert {*RANGES} == {name.removeprefix("now-") for name in SPANS} | {"all"}


def test_advice_has_the_change_the_saving_and_what_to_paste(clusters):
    lake = LocalLake(clusters)
    advised = 0
    for first in Store(lake).advice().rows:
        if first["rank"] > 1:
            continue
        found = advise(lake, first["group_id"], cluster=first["cluster"])
        text, values = advise_text(found), json.loads(json.dumps(advise_values(found)))
        assert first["explanation"] == values["changes"][0]["explanation"]
        if changes := recommended(found.rows):
            advised += 1
            assert text.count("resource-seconds, m") == len(changes)
            pasted = {line for each in changes for line in "\n".join(dict(each["settings"]).values()).splitlines()}
            shown = {line.strip() for line in text.splitlines()}
            assert not pasted or {line.strip() for line in pasted} & shown
        else:
            assert "No change is recommended." in text
    assert advised


def test_what_is_missing_is_one_sentence_and_exit_code_2(clusters, tmp_path, capsys):
    tmp_path.chmod(0o700)
    here = ("--warehouse", str(clusters))
    for arguments, sentence in (
        (("advise", "nobody", *here), "There is no group nobody: the Fleet page lists all groups."),
        (("top", "--rows", "0", *here), "--rows 0 is out of range: it can be 1 to 1,000."),
        (("top", "--warehouse", str(tmp_path)), "The warehouse has no groups yet"),
    ):
        assert 2 == main([*arguments])
        assert sentence in capsys.readouterr().err


def test_a_group_without_advice_is_not_analyzed_yet(tmp_path):
    rows = [row(GROUPS, cluster="a", group_id="orders", first_seen_at=1, last_record_at=2)]
    write_deltalake(f"{tmp_path}/{GROUPS.name}", stored(rows, GROUPS))
    with pytest.raises(NoAnswerError, match=r"The group orders is not analyzed yet: run `regroup analyze`\."):
        advise(LocalLake(tmp_path), "orders")


def test_hostile_names_stay_on_their_line(tmp_path, now):
    sample.write(tmp_path, sample.merge({}, sample.hostile(now, STRINGS[::9])))
    found = top(LocalLake(tmp_path), None, 40)
    text = top_text(found, now_ms=now, **OLD)
    assert not [c for c in text if (ord(c) < 32 and c != "\n") or ord(c) in (0x7F, 0x202E, 0x2066)]
    assert len(found.groups) == len(text.split("Last rebalance\n")[1].splitlines()) - (found.groups[0]["total"] > 40)


def test_the_first_column_is_cut_in_its_middle():
    lines = list(columns([("Group", "Lost"), ("g" * 90 + "-blue-17", "1"), ("short", "22")], 60))
    assert max(map(len, lines)) <= 60
    assert lines[1].startswith("ggg")
    assert "…-blue-17  1" in lines[1].replace("     ", "")
