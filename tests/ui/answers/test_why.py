"""`regroup why` answers with what the tables hold: verdict, who, cost, what would have avoided it, and the page."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from deltalake import write_deltalake

from dashboards.answers.why import NoAnswerError, why
from dashboards.answers.why_text import is_answered, why_text, why_values
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.urlstate import Window, parse
from jobs.cli import main
from jobs.why import span_of
from pipelines.arrow_types import stored
from schemas.silver import GROUPS
from testing import sample
from testing.alerts.rows import row
from tests.ui.pages.hostile import STRINGS

GROUP = "billing-worker"
URL = "https://regroup.example/rebalance?x"


def text_of(found, now, stale_ms=10**12):
    return why_text(found, URL, now_ms=now, stale_ms=stale_ms)


def test_the_answer_at_a_time_says_who_it_was_with_proof_and_page(warehouse, lake, now):
    of = lake(warehouse)
    judged = Store(of).verdict(sample.CLUSTER, GROUP, 0, 5)
    found = why(of, GROUP, at=(judged["joined_at"], judged["joined_at"]))
    assert (5, 0, judged) == (found.found.generation["generation_id"], found.away_ms, found.verdict)
    text = text_of(found, now)
    begun = text.index("It was the broker (observed)")
    for label in ("Cause ", "Who ", "Cost ", "What ", "Avoid ", "Proof ", f"Page      {URL}"):
        assert begun < text.index(f"\n{label}"), label
    assert "billing-3, on 10.0.4.13" in text
    assert is_answered(found)


def test_json_has_the_values_of_the_tables(warehouse, lake, now):
    found = why(lake(warehouse), GROUP, cluster=sample.CLUSTER)
    values = json.loads(json.dumps(why_values(found, URL, now_ms=now + 1_000, stale_ms=0)))
    assert (sample.CLUSTER, GROUP, URL, True) == tuple(values[k] for k in ("cluster", "group_id", "url", "is_stale"))
    for name in ("verdict", "evidence", "lost_resource_seconds", "instances", "proof"):
        assert found.verdict[name] == values["verdict"][name], name
    joined = datetime.fromisoformat(values["rebalance"]["joined_at"])
    assert found.found.generation["joined_at"] == round(joined.timestamp() * 1000)


def test_every_rebalance_of_recorded_clusters_is_found_at_its_time(clusters, now):
    lake = LocalLake(clusters)
    store = Store(lake)
    seen = store.span()
    whole = Window(seen.first_at, seen.last_at + 1, is_live=False)
    asked = 0
    for group in store.fleet(whole).rows:
        rows = store.generations(group["cluster"], group["group_id"], whole).rows
        for generation in rows[::3]:
            at = generation["joined_at"]
            found = why(lake, group["group_id"], cluster=group["cluster"], at=(at, at))
            chosen = found.found.generation
            assert 0 == found.away_ms
            assert chosen["prepared_at_earliest"] <= at <= (chosen["completed_at"] or at)
            assert text_of(found, now)
            asked += 1
        newest = why(lake, group["group_id"], cluster=group["cluster"])
        of_episode = [
            each["lost"] for each in rows if each["generation_id"] >= newest.found.episode["first_generation_id"]
        ]
        chosen = next(each for each in rows if each["generation_id"] == newest.found.generation["generation_id"])
        assert max(of_episode) == chosen["lost"]
    assert asked > 10


def test_a_time_without_a_rebalance_gives_the_nearest_and_says_so(clusters, now):
    lake = LocalLake(clusters)
    at = Store(lake).span("churn").last_at + 60_000
    found = why(lake, "imports-joiner", at=(at, at + 999))
    assert found.away_ms >= 60_000 - 30_000
    assert "No rebalance at that time. This is the nearest one, " in text_of(found, now)


def test_old_data_never_looks_like_the_present(warehouse, lake, now):
    found = why(lake(warehouse), GROUP)
    assert "what happened since is not known" not in text_of(found, found.seen.last_at)
    assert "The newest record is 2 h old: what happened since is not known." in why_text(
        found, URL, now_ms=found.seen.until[sample.CLUSTER] + 7_200_000, stale_ms=120_000
    )


def test_names_cannot_change_the_terminal_or_add_lines(tmp_path, now):
    sample.write(tmp_path, sample.merge({}, sample.hostile(now, STRINGS)))
    lake = LocalLake(tmp_path)
    answered = 0
    for name in STRINGS[::25]:
        with suppress(NoAnswerError):
            found = why(lake, name)
            answered += 1
            text = text_of(found, now)
            assert not [c for c in text if (ord(c) < 32 and c != "\n") or ord(c) in (0x7F, 0x202E, 0x2066)]
            assert json.dumps(why_values(found, URL, now_ms=now, stale_ms=0))
    assert answered


def test_what_is_missing_is_one_sentence_and_exit_code_2(clusters, tmp_path, capsys):
    tmp_path.chmod(0o700)

    def said(*arguments):
        assert 2 == main(["why", *arguments])
        return capsys.readouterr().err.splitlines()[-1]

    here = ("--warehouse", str(clusters))
    assert "There is no group joiner: similar names are imports-joiner." in said("joiner", *here)
    assert "There is no group nobody: the Fleet page lists all groups." in said("nobody", *here)
    assert "There is no cluster x: --cluster is one of churn, " in said("nobody", "--cluster", "x", *here)
    assert "--at 'noon' is not a valid time" in said("imports-joiner", "--at", "noon", *here)
    assert "--at '12:99' is not a time of day: write 12:03" in said("imports-joiner", "--at", "12:99", *here)
    assert "--at '9999-12-31T23:59:59Z' is in the future." in said("x", "--at", "9999-12-31T23:59:59Z", *here)
    assert "The warehouse has no groups yet" in said("nobody", "--warehouse", str(tmp_path))


def test_a_group_of_several_clusters_needs_the_cluster(tmp_path):
    rows = [row(GROUPS, cluster=name, group_id="orders", first_seen_at=1, last_record_at=2) for name in ("a", "b")]
    write_deltalake(f"{tmp_path}/{GROUPS.name}", stored(rows, GROUPS))
    with pytest.raises(NoAnswerError, match="Several clusters have a group orders: add --cluster with one of a, b"):
        why(LocalLake(tmp_path), "orders")
    with pytest.raises(NoAnswerError, match="No rebalance of the group orders is known in the cluster a"):
        why(LocalLake(tmp_path), "orders", cluster="a")


def test_the_command_prints_the_answer_and_its_address_opens_the_page(clusters, capsys):
    code = main(["why", "imports-joiner", "--warehouse", str(clusters), "--json"])
    values = json.loads(capsys.readouterr().out)
    assert (values["verdict"]["verdict"] == "unknown") == code
    state = parse(*values["url"].removeprefix("http://127.0.0.1:8050").split("?"))
    assert ("rebalance", "churn", "imports-joiner") == (state.page, state.cluster, state.group)
    assert values["rebalance"]["generation_id"] == state.generation


@pytest.mark.parametrize(
    ("at", "first", "milliseconds"),
    [
        ("12:03", "2026-11-25T12:03:00Z", 60_000),
        ("09:30", "2026-11-26T09:30:00Z", 60_000),
        ("9:30:07", "2026-11-26T09:30:07Z", 1_000),
        ("2026-11-21T12:01:40Z", "2026-11-21T12:01:40Z", 1_000),
    ],
)
def test_a_time_of_day_is_the_last_one(at, first, milliseconds):
    now = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
    begin = round(datetime.fromisoformat(first).timestamp() * 1000)
    assert (begin, begin + milliseconds - 1) == span_of(at, round(now.timestamp() * 1000))
