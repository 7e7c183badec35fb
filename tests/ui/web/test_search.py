"""The search finds a group among ten thousand while its name is typed, and foreign text stays text."""

from __future__ import annotations

import json
from functools import partial

import pytest

from dashboards.app import create_app
from dashboards.web.search import Search
from testing import sample
from testing.processor_time import within

HOSTILE = ["<img src=x onerror=alert(1)>", "$(touch x)", "[a-", "\\", "a]b^c", "%", "'; --", "line\nbreak", "", "ünï"]


class Ids:
    """A lake with given group ids."""

    def __init__(self, *ids: str) -> None:
        self.rows = [{"cluster": "c", "group_id": each} for each in ids]

    def versions(self):
        return {"groups": 1}

    def query(self, *_):
        return self


def found(typed, *ids):
    return [hit.group for hit in Search(Ids(*ids)).find(typed)[0]]


def test_the_nearer_a_group_is_to_what_was_typed_the_further_up_it_stands():
    near = ["orders", "orders-eu", "eu.orders", "reorders", "old-r-d-e-r-s"]
    assert near == found("ORDERS", *reversed(near))


def test_characters_in_order_are_enough_and_those_close_together_come_first():
    ids = ("payments-writer-003", "pricing-audit-warehouse-003", "orders-reader")
    assert ["payments-writer-003", "pricing-audit-warehouse-003"] == found("pw03", *ids)
    assert ["payments-writer-003"] == found("pay wri 3", *ids)


def test_nothing_typed_finds_nothing_and_too_much_is_cut():
    assert ([], 0) == Search(Ids("a")).find("  ")
    assert ["a" * 600] == found("a" * 512, "a" * 600, "b")


def test_the_number_found_is_reported_beyond_those_shown():
    best, total = Search(Ids(*(f"group-{n}" for n in range(100)))).find("group")
    assert (12, 100) == (len(best), total)


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip()])
def test_every_character_means_itself(text):
    assert text in found(text, *HOSTILE, "plain")
    assert "plain" not in found(text, *HOSTILE, "plain")


def test_no_id_makes_it_slow():
    ids = ["a" * 500] * 2_000 + ["ab" * 250] * 2_000
    within(2, lambda: (found("a" * 400 + "c", *ids), found("ab" * 100 + "c", *ids)))


def test_a_new_group_is_found_once_the_table_has_it(tmp_path, now, lake):
    sample.write(tmp_path, sample.static(now))
    search = Search(lake(tmp_path, fresh_seconds=0))
    assert 0 == search.find("nightly")[1]
    sample.write(tmp_path, {"groups": sample.nightly(now)["groups"]})
    assert ["nightly-report"] == [hit.group for hit in search.find("nightly")[0]]
    assert 1 == len(search._ids), "the list of the earlier version is kept too"


def test_the_answer_is_json_with_addresses_that_keep_the_range(warehouse, lake):
    client = create_app(lake(warehouse)).server.test_client()
    response = client.get("/search?q=billing&from=now-6h&v=1", base_url="http://127.0.0.1")
    assert "application/json" == response.mimetype
    assert {"Content-Security-Policy", "X-Content-Type-Options"} <= set(response.headers.keys())
    assert "no-store" == response.headers["Cache-Control"]
    (group,) = response.json["groups"]
    assert ("billing-worker", "/group?from=now-6h&cluster=prod-eu&group=billing-worker") == (
        group["label"],
        group["href"],
    )
    assert 403 == client.get("/search?q=billing", base_url="http://pages.example").status_code
    for query in ("", "?q=", "?q=%ff%fe", "?q=a&q=b", "?from=x", "?q=" + "a" * 5000):
        assert 200 == client.get(f"/search{query}", base_url="http://127.0.0.1").status_code


def test_ten_thousand_ids_take_less_than_fifty_milliseconds_of_the_processor(tmp_path, now, lake):
    template = sample.nightly(now)["groups"][0]
    ids = [f"team-{n % 97}.service-{n % 31}.consumer-{n:05d}" for n in range(10_000)]
    sample.write(tmp_path, {"groups": [template | {"group_id": each} for each in ids]})
    client = create_app(lake(tmp_path)).server.test_client()
    client.get("/search?q=a", base_url="http://127.0.0.1")
    for n in range(40):
        typed = ids[n * 211][n % 7 : n % 7 + 1 + n % 11]
        json.loads(within(0.05, partial(client.get, f"/search?q={typed}", base_url="http://127.0.0.1")).data)
