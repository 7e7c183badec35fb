"""The queries of a page begin when its document is requested, for the reader who requested it."""

from __future__ import annotations

from threading import Event
from urllib.parse import urlsplit

import pytest
from dash import Dash
from flask import Flask, request

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from dashboards.queries.ahead import ahead
from dashboards.web.access import Access
from dashboards.web.early_queries import begin_early
from testing.waiting import wait_until


class Recording(LocalLake):
    """A lake that notes the prefixes of each query."""

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.asked = []

    def query(self, sql, tables, cap, parameters, prefixes=None):
        found = super().query(sql, tables, cap, parameters, prefixes)
        self.asked.append(prefixes)
        return found


@pytest.fixture
def built():
    """A server that notes what is built early, and what ends its builds."""
    server, found, may_end = Flask("documents"), [], Event()

    def build(pathname, search):
        found.append((pathname, search, request.headers.get("X-Reader")))
        may_end.wait(30)

    begin_early(server, build)
    server.add_url_rule("/", "any", lambda: "document")
    server.add_url_rule("/<path:path>", "path", lambda path: "document")
    yield server.test_client(), found, may_end
    may_end.set()


def test_a_document_of_a_page_is_built_early_with_the_request_of_its_reader(built) -> None:
    pages, found, may_end = built
    may_end.set()
    for address in ("/", "/group?cluster=c&group=a%2Fb+c"):
        parts = urlsplit(address)
        wanted = (parts.path, f"?{parts.query}" if parts.query else "", "ada")
        # The build before it may not have ended yet.
        wait_until(lambda at=address, last=wanted: pages.get(at, headers={"X-Reader": "ada"}) and found[-1:] == [last])


def test_other_requests_build_nothing_and_one_build_runs_at_a_time(built) -> None:
    pages, found, _ = built
    for path in ("/nowhere", "/assets/regroup.css", "/healthz", "/_dash-layout"):
        pages.get(path)
    pages.post("/")
    assert [] == found
    pages.get("/")
    wait_until(lambda: found)
    pages.get("/storms")
    assert [("/", "", None)] == found


def test_early_queries_are_limited_to_the_groups_of_the_reader(warehouse) -> None:
    lake = Recording(warehouse)
    access = Access.of(proxies="127.0.0.0/8", readers={"ada": ["billing-"]})
    app: Dash = create_app(lake, access=access)
    assert 200 == app.server.test_client().get("/", headers={"X-Forwarded-User": "ada"}).status_code
    wait_until(lambda: len(lake.asked) > 3)
    assert {("billing-",)} == set(lake.asked)


def test_a_query_started_ahead_returns_its_result_or_raises_its_error() -> None:
    assert 3 == ahead(lambda a, b: a + b, 1, b=2).result()
    with pytest.raises(ZeroDivisionError):
        ahead(lambda: 1 / 0).result()
