"""The JSON API: the rules of the pages, errors in JSON, and a client that knows nothing but the OpenAPI document."""

from __future__ import annotations

import json
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from openapi_spec_validator import validate

from dashboards.answers.questions.questions import QUESTIONS
from dashboards.app import create_app
from dashboards.lake.lake import LakeError, LocalLake
from dashboards.web.access import Access
from dashboards.web.api import BURST
from dashboards.web.openapi import document
from dashboards.web.rate_limit import RateLimit
from testing.serving import serving
from testing.warehouses import recorded

TOKEN = "a-token-of-some-length"
HERE = "http://127.0.0.1"
VALUES = {"group": "imports-joiner", "last": "24h", "limit": "3", "days": "1"}


@pytest.fixture
def client(warehouse):
    def made(**access):
        return create_app(LocalLake(warehouse), access=Access.of(**access)).server.test_client()

    return made


def test_the_document_is_valid_and_describes_every_question() -> None:
    validate(document())
    assert [f"/{question.name}" for question in QUESTIONS] == list(document()["paths"])


def test_a_client_that_knows_only_the_document_gets_every_answer(tmp_path) -> None:
    """Over HTTP, from pages in a process of their own."""
    recorded.write(tmp_path)
    with serving(tmp_path) as address:
        _asks_everything(address)


def _asks_everything(address: str) -> None:
    with urlopen(f"{address}/api/v1/openapi.json") as response:
        described = json.load(response)
    (server,) = described["servers"]
    for path, operations in described["paths"].items():
        operation = operations["get"]
        query = {each["name"]: VALUES[each["name"]] for each in operation["parameters"] if each["name"] in VALUES}
        with urlopen(f"{address}{server['url']}{path}?{urlencode(query)}") as response:
            assert response.headers["Content-Type"] == "application/json"
            found = json.load(response)
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        assert set(schema["required"]) <= set(found), path


@pytest.mark.parametrize(
    ("path", "status"),
    [("why", 400), ("why?group=a&group=b", 400), ("why?group=none", 404), ("none", 404), ("a/b", 404), ("why%00", 404)],
)
def test_an_error_is_a_sentence_in_json(client, path, status) -> None:
    response = client().get(f"/api/v1/{path}", base_url=HERE)
    assert (status, "application/json") == (response.status_code, response.headers["Content-Type"])
    assert ["error"] == list(response.json)
    assert response.json["error"].endswith(".")


def test_answers_have_the_headers_of_every_response_and_nobody_stores_them(client) -> None:
    response = client().get("/api/v1/why?group=billing-worker", base_url=HERE)
    assert "no-store" == response.headers["Cache-Control"]
    health = client().get("/healthz", base_url=HERE).headers
    for name in ("Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"):
        assert health[name] == response.headers[name]
    assert 405 == client().post("/api/v1/why", base_url=HERE).status_code


def test_the_guard_stands_before_answers(client) -> None:
    pages = client(token=TOKEN)
    assert 401 == pages.get("/api/v1/groups").status_code
    assert 401 == pages.get("/api/v1/openapi.json").status_code
    assert 200 == pages.get("/api/v1/groups", headers={"Authorization": f"Bearer {TOKEN}"}).status_code
    assert 403 == client().get("/api/v1/groups", base_url="http://evil.example").status_code


def test_a_reader_gets_their_groups_only(client) -> None:
    pages = client(
        proxies="127.0.0.1", hosts="regroup.example", address="https://regroup.example",
        readers={"ann": ["imports-"], "bob": ["billing-", "imports-"], "eve": ["x-"]},
    )  # fmt: skip

    def read(question, name):
        here = {"headers": {"X-Forwarded-User": name}, "base_url": "http://regroup.example"}
        return pages.get(f"/api/v1/{question}", **here)

    for question in ("why", "rebalances", "advice", "incident"):
        asked = f"{question}?group=billing-worker" + ("&last=24h" if question == "rebalances" else "")
        assert [404, 404] == [read(asked, name).status_code for name in ("ann", "eve")], question
        assert read(asked, "bob").status_code in {200, 404}, question
    assert read("why?group=billing-worker", "bob").json["url"].startswith("https://regroup.example/rebalance?")
    for question in ("groups?last=all", "report?days=30", "storms?last=all", "incident?storm=together"):
        assert "billing-worker" not in read(question, "ann").text, question
    assert {"imports-joiner"} >= {group["group_id"] for group in read("groups?last=all", "ann").json["groups"]}


def test_a_reader_who_asks_too_often_waits_and_others_do_not(client) -> None:
    pages = client(proxies="127.0.0.1", hosts="a")

    def read(name):
        return pages.get("/api/v1/nothing", headers={"X-Forwarded-User": name}, base_url="http://a")

    statuses = [read("ann").status_code for _ in range(BURST + 20)]
    assert {404, 429} == set(statuses)
    assert statuses.index(429) >= BURST
    refused = read("ann")
    while refused.status_code != 429:
        refused = read("ann")
    assert int(refused.headers["Retry-After"]) >= 1
    assert "Too many requests" in refused.json["error"]
    assert 404 == read("bob").status_code


def test_a_limit_refills_and_forgets() -> None:
    now = [0.0]
    limit = RateLimit(2, 0.5, lambda: now[0])
    assert [0, 0, 2] == [limit.wait_s("ann") for _ in range(3)]
    assert 0 == limit.wait_s("bob")
    now[0] = 1.0
    assert 1 == limit.wait_s("ann")
    now[0] = 2.0
    assert [0, 2] == [limit.wait_s("ann") for _ in range(2)]
    now[0] = 1_000.0
    assert [0, 0, 2] == [limit.wait_s("ann") for _ in range(3)]
    for reader in range(5_000):
        limit.wait_s(reader)
    assert len(limit._left) <= 4_096


def test_tables_that_cannot_be_read_are_a_sentence(tmp_path) -> None:
    class Asleep(LocalLake):
        def query(self, *_, **__):
            raise LakeError("The SQL warehouse is stopped: start it.")

    response = create_app(Asleep(tmp_path)).server.test_client().get("/api/v1/groups", base_url=HERE)
    assert (503, {"error": "The SQL warehouse is stopped: start it."}) == (response.status_code, response.json)
