"""`/trace.json` obeys access control and the setting `readers`, and has the headers of every other response."""

from __future__ import annotations

import json

import pytest

from dashboards.app import create_app
from dashboards.lake.lake import LakeError, LocalLake
from dashboards.web.access import Access
from testing import sample

TOKEN = "a-token-of-some-length"
HERE = "http://127.0.0.1"
TRACE = f"/trace.json?cluster={sample.CLUSTER}&group=billing-worker&from=now-6h"


@pytest.fixture
def client(warehouse):
    def made(**access):
        return create_app(LocalLake(warehouse), access=Access.of(**access)).server.test_client()

    return made


def test_a_trace_is_a_file_of_the_range_in_the_address(client, now) -> None:
    response = client().get(TRACE, base_url=HERE)
    assert (200, "application/json") == (response.status_code, response.headers["Content-Type"])
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Content-Disposition"].startswith('attachment; filename="trace-20')
    health = client().get("/healthz", base_url=HERE).headers
    for name in ("Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"):
        assert health[name] == response.headers[name]
    assert "billing-worker" == json.loads(response.text)["otherData"]["group"]
    short = client().get(f"{TRACE}&from={now - 60_000}&to={now}", base_url=HERE)
    assert len(short.data) < len(response.data)


@pytest.mark.parametrize("group", ["nobody", "<script>", "", "%00"])
def test_a_group_that_is_not_there_is_a_sentence(client, group) -> None:
    response = client().get(f"/trace.json?cluster={sample.CLUSTER}&group={group}", base_url=HERE)
    assert (404, "text/plain; charset=utf-8") == (response.status_code, response.headers["Content-Type"])
    assert 1 == response.text.count("\n")


def test_the_guard_stands_before_traces(client) -> None:
    pages = client(token=TOKEN)
    assert 401 == pages.get(TRACE).status_code
    assert 200 == pages.get(TRACE, headers={"Authorization": f"Bearer {TOKEN}"}).status_code
    assert 403 == client().get(TRACE, base_url="http://evil.example").status_code


def test_a_reader_gets_traces_of_their_groups_only(client) -> None:
    pages = client(proxies="127.0.0.1", hosts="a", readers={"ann": ["imports-"], "bob": ["billing-"]})

    def read(name):
        return pages.get(TRACE, headers={"X-Forwarded-User": name}, base_url="http://a").status_code

    assert [404, 200] == [read("ann"), read("bob")]


def test_tables_that_cannot_be_read_are_a_sentence(tmp_path) -> None:
    class Broken(LocalLake):
        def query(self, *_, **__):
            raise LakeError("The SQL warehouse is stopped: start it.")

    response = create_app(Broken(tmp_path)).server.test_client().get(TRACE, base_url=HERE)
    assert (503, "The SQL warehouse is stopped: start it.\n") == (response.status_code, response.text)
