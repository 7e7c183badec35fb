"""`/incident` obeys access control and `readers`, has the headers of every response, and refuses invalid parameters."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from dashboards.app import create_app
from dashboards.lake.lake import LakeError, LocalLake
from dashboards.lake.readers import ReadersLake
from dashboards.queries.store import Store
from dashboards.urlstate import Window
from dashboards.web.access import Access
from testing import sample

TOKEN = "a-token-of-some-length"
HERE = "http://127.0.0.1"
REBALANCE = f"/incident?cluster={sample.CLUSTER}&group=billing-worker&generation=5"
STORM = "/incident?storm=together"


@pytest.fixture
def client(warehouse):
    def made(**access):
        return create_app(LocalLake(warehouse), access=Access.of(**access)).server.test_client()

    return made


@pytest.mark.parametrize("path", [REBALANCE, f"{REBALANCE}&episode=1", STORM])
def test_a_document_is_one_page_with_the_headers_of_every_response(client, path) -> None:
    response = client().get(path, base_url=HERE)
    assert (200, "text/html; charset=utf-8") == (response.status_code, response.headers["Content-Type"])
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Content-Disposition"].startswith('inline; filename="incident-20')
    health = client().get("/healthz", base_url=HERE).headers
    for name in ("Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"):
        assert health[name] == response.headers[name]
    assert "script" not in response.text
    assert f"{HERE}/" in response.text


@pytest.mark.parametrize(("kind", "media"), [("markdown", "text/markdown"), ("json", "application/json")])
def test_other_formats_are_sent_as_files(client, kind, media) -> None:
    response = client().get(f"{REBALANCE}&format={kind}", base_url=HERE)
    assert response.headers["Content-Type"].startswith(media)
    assert response.headers["Content-Disposition"].startswith("attachment; ")


def test_times_are_of_the_zone_in_the_address(client) -> None:
    assert "Asia/Kolkata" in client().get(f"{REBALANCE}&tz=Asia/Kolkata", base_url=HERE).text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/incident", 404),
        ("/incident?storm=nothing", 404),
        (f"/incident?cluster={sample.CLUSTER}&group=billing-worker&generation=99", 404),
        (f"/incident?cluster={sample.CLUSTER}&group=billing-worker&generation=x", 404),
        (f"/incident?cluster={sample.CLUSTER}&group=<script>&generation=1", 404),
        (f"/incident?cluster={sample.CLUSTER}&gid=0&generation=1", 404),
        (f"{REBALANCE}&format=exe", 400),
        (f"/incident?storm={quote(chr(0) * 600)}", 404),
    ],
)
def test_what_there_is_no_document_of_is_a_sentence(client, path, status) -> None:
    response = client().get(path, base_url=HERE)
    assert (status, "text/plain; charset=utf-8") == (response.status_code, response.headers["Content-Type"])
    assert 1 == response.text.count("\n")


def test_the_guard_stands_before_documents(client) -> None:
    pages = client(token=TOKEN)
    assert 401 == pages.get(REBALANCE).status_code
    assert 200 == pages.get(REBALANCE, headers={"Authorization": f"Bearer {TOKEN}"}).status_code
    assert 403 == client().get(REBALANCE, base_url="http://evil.example").status_code


def test_a_reader_gets_documents_of_their_groups_only(client) -> None:
    pages = client(
        proxies="127.0.0.1", hosts="regroup.example", address="https://regroup.example",
        readers={"ann": ["imports-"], "bob": ["billing-", "imports-"], "eve": ["x-"]},
    )  # fmt: skip

    def read(path, name):
        return pages.get(path, headers={"X-Forwarded-User": name}, base_url="http://regroup.example")

    assert [404, 200, 404] == [read(REBALANCE, name).status_code for name in ("ann", "bob", "eve")]
    assert "billing-worker" not in read(REBALANCE, "ann").text.replace("group billing-worker", "")
    assert [404, 200, 404] == [read(STORM, name).status_code for name in ("ann", "bob", "eve")]
    assert "https://regroup.example/rebalance?" in read(REBALANCE, "bob").text


def test_a_reader_of_some_groups_of_a_storm_sees_neither_the_others_nor_the_cause(warehouse) -> None:
    lake = ReadersLake(LocalLake(warehouse), lambda: ("imports-",))
    seen = Store(lake).span()
    rows = Store(lake).storms(Window(seen.first_at, seen.last_at + 1, is_live=False)).rows
    (hidden,) = [row["storm_id"] for row in rows if row["evidence"] is None]
    pages = create_app(
        LocalLake(warehouse), access=Access.of(proxies="127.0.0.1", readers={"ann": ["imports-"]}, hosts="a")
    ).server.test_client()
    text = pages.get(f"/incident?storm={hidden}", headers={"X-Forwarded-User": "ann"}, base_url="http://a").text
    assert "imports-joiner" in text
    assert "groups that you may not see" in text
    for name in ("billing-worker", "8.0 times", "session timeout"):
        assert name not in text, name


def test_tables_that_cannot_be_read_are_a_sentence(tmp_path) -> None:
    class Asleep(LocalLake):
        def query(self, *_, **__):
            raise LakeError("The SQL warehouse is stopped: start it.")

    response = create_app(Asleep(tmp_path)).server.test_client().get(REBALANCE, base_url=HERE)
    assert (503, "The SQL warehouse is stopped: start it.\n") == (response.status_code, response.text)
