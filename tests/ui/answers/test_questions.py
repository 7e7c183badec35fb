"""The questions of programs: what their answers hold, what they refuse, and pages that lead to the rest."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dashboards.answers.questions.question import BadRequestError, QuestionContext, milliseconds
from dashboards.answers.questions.questions import BY_NAME, QUESTIONS
from dashboards.answers.why import NoAnswerError
from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.urlstate import Window
from testing import sample

STATE = {"stale_ms": 60_000, "base_url": "http://here"}
GIVEN = {
    "health": {},
    "groups": {"last": "all"},
    "why": {"group": "imports-joiner"},
    "rebalances": {"group": "imports-joiner", "last": "all"},
    "advice": {"group": "imports-joiner"},
    "report": {"days": 366},
    "storms": {"last": "all"},
    "deploys": {"last": "all", "group": "scoring-worker"},
    "incident": {"group": "imports-joiner", "generation": 9},
}


@pytest.fixture(scope="module")
def ask(clusters):
    asked = QuestionContext(lake=LocalLake(clusters), now_ms=time.time_ns() // 1_000_000, **STATE)
    return lambda name, **parameters: BY_NAME[name].ask(asked, parameters)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_an_answer_has_the_keys_that_are_described_and_is_json(ask, question) -> None:
    found = ask(question.name, **GIVEN[question.name])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    missing = set(question.keys) - set(found)
    assert not missing
    # An incident also has the rows of what it is about.
    assert question.name == "incident" or set(found) == set(question.keys)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_an_answer_fits_its_schema_and_has_no_field_that_is_not_described(ask, question) -> None:
    found = ask(question.name, **GIVEN[question.name])
    Draft202012Validator(question.answer_schema()).validate(found)
    for name, inside in question.fields.items():
        rows = (found[name] or ()) if inside.is_list else [found[name]]
        for row in rows:
            assert row is None or set(row) == set(inside.of), name


def test_pages_of_groups_are_all_groups_once(ask, clusters) -> None:
    whole = ask("groups", last="all", limit=1000)
    assert whole["total"] == len(whole["groups"]) > 3
    parts = [ask("groups", last="all", limit=2, offset=n)["groups"] for n in range(0, whole["total"], 2)]
    assert whole["groups"] == [group for part in parts for group in part]
    assert whole["totals"]["rebalances"] == Store(LocalLake(clusters)).totals(_whole(clusters))["rebalances"]
    named = ask("groups", last="all", named="IMPORTS")["groups"]
    assert {"imports-joiner"} == {group["group_id"] for group in named}


def test_pages_of_storms_are_all_storms_once(tmp_path, now) -> None:
    sample.write(tmp_path, sample.everyday(now))
    asked = QuestionContext(lake=LocalLake(tmp_path), now_ms=now, **STATE)

    def ask(name, **given):
        return BY_NAME[name].ask(asked, given)

    whole = ask("storms", last="all", limit=500)
    assert whole["is_whole"]
    assert len(whole["storms"]) > 1
    parts = [ask("storms", last="all", limit=1, offset=n) for n in range(len(whole["storms"]))]
    assert whole["storms"] == [storm for part in parts for storm in part["storms"]]
    assert [part["is_whole"] for part in parts] == [*[False] * (len(parts) - 1), True]
    assert [] == ask("storms", last="all", limit=1, offset=len(parts))["storms"]


def _whole(clusters):
    seen = Store(LocalLake(clusters)).span()
    return Window(seen.first_at, seen.last_at + 1, is_live=False)


def test_pages_of_rebalances_are_all_rebalances(ask) -> None:
    whole = ask("rebalances", group="imports-joiner", last="all", limit=500)
    assert whole["next_to"] is None
    found, to = [], None
    while True:
        part = ask("rebalances", group="imports-joiner", last="all", limit=3, to=to)
        found += [each for each in part["rebalances"] if each not in found]
        if (to := part["next_to"]) is None:
            break
    assert len(whole["rebalances"]) > 3
    assert whole["rebalances"] == found


def test_rebalances_of_one_millisecond_are_on_one_page(tmp_path, now) -> None:
    rows = sample.churny(now)
    for row in rows["generations"][2:5]:
        row["joined_at"] = rows["generations"][3]["joined_at"]
    sample.write(tmp_path, rows)
    asked = QuestionContext(lake=LocalLake(tmp_path), now_ms=now, **STATE)
    given = {"group": rows["groups"][0]["group_id"], "last": "all"}
    whole = BY_NAME["rebalances"].ask(asked, given | {"limit": 500})["rebalances"]
    found, to = [], None
    for _ in whole:
        part = BY_NAME["rebalances"].ask(asked, given | {"limit": 1, "to": to})
        found += part["rebalances"]
        if (to := part["next_to"]) is None:
            break
    assert to is None
    assert whole == found


def test_a_range_is_chosen_by_its_ends(ask) -> None:
    joined = [each["joined_at"] for each in ask("rebalances", group="imports-joiner", last="all")["rebalances"]]
    newest, second = joined[:2]
    found = ask("rebalances", group="imports-joiner", **{"from": second, "to": newest})
    assert [second] == [each["joined_at"] for each in found["rebalances"]]


def test_a_share_group_has_no_loss_and_not_none_of_it(ask) -> None:
    found = ask("groups", last="all", limit=1000)["groups"]
    for group in found:
        assert (group["lost"] is None) == (group["group_protocol"] == "share")


@pytest.mark.parametrize(
    ("name", "parameters", "sentence"),
    [
        ("why", {}, "why needs the parameter group: id of the consumer group."),
        ("why", {"group": ""}, "why needs the parameter group"),
        ("why", {"group": "a", "grp": "b"}, "why has no parameter grp: it has group, cluster"),
        ("why", {"group": "a", "at": "12:03"}, "at must be a time such as"),
        ("why", {"group": "a", "at": "1969-12-31T23:59:59Z"}, "at must be a time such as"),
        ("why", {"group": "a", "at": "2026-11-21", "generation": 1}, "by at or by generation, not by both"),
        ("why", {"group": "a", "generation": True}, "generation must be a whole number from 0"),
        ("why", {"group": "a", "generation": "1.5"}, "generation must be a whole number"),
        ("why", {"group": ["a"]}, "group must be a text"),
        ("why", {"group": "a" * 40_000}, "group must be a text of at most 32,768 characters"),
        ("groups", {"limit": 1001}, "limit must be a whole number from 1 to 1,000"),
        ("groups", {"last": "2d"}, "last is one of 15m, 1h"),
        ("groups", {"from": "2026-11-21", "to": "2026-11-20"}, "The range must end after it begins"),
        ("incident", {}, "incident needs either group or storm"),
        ("incident", {"group": "a", "storm": "b"}, "incident needs either group or storm"),
        ("incident", {"group": "a", "episode": "maybe"}, "episode is true or false"),
    ],
)
def test_what_is_asked_wrongly_is_one_sentence(ask, name, parameters, sentence) -> None:
    with pytest.raises(BadRequestError, match=r"\.$") as found:
        ask(name, **parameters)
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("parameters", [{"group": "none"}, {"group": "imports-joiner", "generation": 999}])
@pytest.mark.parametrize("name", ["why", "incident"])
def test_what_there_is_nothing_of_is_one_sentence(ask, name, parameters) -> None:
    with pytest.raises(NoAnswerError):
        ask(name, **parameters)


@given(st.sampled_from(QUESTIONS), st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.none())))
def test_any_parameters_get_an_answer_or_a_sentence(clusters, question, sent) -> None:
    asked = QuestionContext(lake=LocalLake(clusters), now_ms=0, **STATE)
    known = dict(zip((each.name for each in question.parameters), sent.values(), strict=False))
    with suppress(BadRequestError, NoAnswerError):
        json.dumps(question.ask(asked, known), allow_nan=False)


def test_a_time_without_a_zone_is_utc() -> None:
    assert milliseconds("2026-11-21T12:03:07") == milliseconds("2026-11-21T13:03:07+01:00") == 1_795_262_587_000
