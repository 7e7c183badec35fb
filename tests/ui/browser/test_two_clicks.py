"""The questions of people on call and of platform teams: two clicks from the fleet at most, and one command."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from jobs.cli import main

ROW = ".ag-row [col-id=group] a"


def printed(capsys: pytest.CaptureFixture[str], recorded, *arguments: str) -> str:
    code = main([*arguments, "--warehouse", str(recorded.warehouse)])
    out, errors = capsys.readouterr()
    assert code in (0, 1), errors
    return out


def group_in(recorded, cluster: str, trigger: str) -> dict:
    return next(
        g
        for g in recorded.rows["generations"]
        if (g["cluster"], g["trigger"]) == (cluster, trigger) and not g["is_empty"]
    )


def test_why_did_it_stop(asking, recorded, capsys) -> None:
    made = group_in(recorded, "churn", "session_expired")
    one = asking("/?from=all")
    one.click(f"{ROW}:text-is('{made['group_id']}')", f"h1:text-is('{made['group_id']}')")
    one.reads("Broker or application?", "the client application", "Why it rebalances", clicks=1)
    one.click(f".grid a:text-is('{made['generation_id']}')", "h1:has-text('Rebalance to generation')")
    one.reads("session", "waited", "Proof", clicks=2)
    out = printed(capsys, recorded, "why", made["group_id"], "--cluster", "churn")
    assert "Proof" in out


def test_was_it_the_broker_or_the_application(asking, recorded, capsys) -> None:
    asking("/?from=all").reads("Broker or application?", "the client application", "of the loss", clicks=0)
    assert "client application" in printed(capsys, recorded, "top", "--last", "all")


def test_who_and_on_which_host(asking, recorded, capsys) -> None:
    made = group_in(recorded, "churn", "session_expired")
    one = asking("/?from=all")
    one.click(f"{ROW}:text-is('{made['group_id']}')", f"h1:text-is('{made['group_id']}')")
    one.click(f".grid a:text-is('{made['generation_id']}')", "h1:has-text('Rebalance to generation')")
    one.reads("gone, had", "127.0.0.1", "Verdict", clicks=2)
    found = json.loads(printed(capsys, recorded, "why", made["group_id"], "--cluster", "churn", "--json"))
    assert found["verdict"]["hosts"] == ["/127.0.0.1"]


def test_was_this_deploy_dearer_than_the_one_before(asking, recorded, capsys) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Deploys')", "h1:text-is('Deploys')")
    one.click("a:text-is('with the one before')", "h1:has-text('Deploy of')")
    one.reads("Compare with another", "Did not come back", clicks=2)
    deploys = Counter((row["cluster"], row["group_id"]) for row in recorded.rows["deploys"])
    (cluster, group), _ = deploys.most_common(1)[0]
    out = printed(capsys, recorded, "deploys", group, "--cluster", cluster, "--compare")
    assert "The one before" in out


def test_what_should_change_what_does_it_save_and_where_is_it_pasted(asking, recorded, capsys) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Advice')", "h1:text-is('Advice')")
    one.click(
        "summary:text-is('Why it rebalances, and what other settings would do')", "summary:has-text('How: '):visible"
    )
    one.reads("Saving, modelled", "Interval", clicks=2)
    (best,) = [row for row in recorded.rows["advice"] if row["is_recommended"] and row["action"] != "none"][:1]
    out = printed(capsys, recorded, "advise", best["group_id"], "--cluster", best["cluster"])
    assert "resource-seconds, modelled" in out


def test_is_it_one_cause_or_many(asking, recorded, capsys) -> None:
    storm = next(row for row in recorded.rows["storms"] if row["cluster"] == "edge")
    one = asking("/?from=all")
    one.click("nav a:text-is('Storms')", "h1:text-is('Storms')")
    one.click("table a:text-is('4 groups together')", "h1:text-is('Storm: 4 groups together')")
    one.reads("Suspected cause", "What is different", clicks=2)
    assert "Suspected cause" in printed(capsys, recorded, "incident", "--storm", storm["storm_id"])


def test_what_did_the_week_cost_by_cause(asking, recorded, capsys) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Causes')", "h1:text-is('Causes')")
    one.reads("the client application", "Before", clicks=1)
    out = printed(capsys, recorded, "report", "--week", "2026-W47")
    assert "By cause" in out
    assert "By cluster" in out


def test_can_i_trust_it(asking, recorded, capsys) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Health')", "h1:text-is('Health of Regroup')")
    one.reads("__consumer_offsets", "uarantine", clicks=1)
    found = json.loads(printed(capsys, recorded, "health", "--json"))
    assert {"stale"} <= {each["kind"] for each in found["problems"]}


def test_did_the_change_help(asking, recorded, capsys) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Advice')", "h1:text-is('Advice')")
    one.reads("rates-reader", "no: absences cost more", clicks=1)
    one.click("a:text-is('rates-reader') >> nth=0", ".js-plotly-plot")
    one.reads("The diamond is the predicted cost", clicks=2)
    assert "No: absences cost more." in printed(capsys, recorded, "advise", "rates-reader")
