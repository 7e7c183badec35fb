"""Each compressed script is cached once, and the cache never grows beyond a limit in bytes."""

from __future__ import annotations

import gzip
from itertools import product

import pytest

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from dashboards.web import compression

SUITE = "/_dash-component-suites/dash/dcc"
SCRIPT = f"{SUITE}/dash_core_components.js"


@pytest.fixture
def kept(monkeypatch):
    """The caches that applications make."""
    found = []

    class Noted(compression.Scripts):
        def __init__(self) -> None:
            super().__init__()
            found.append(self)

    monkeypatch.setattr(compression, "Scripts", Noted)
    return found


@pytest.fixture
def client(tmp_path, kept):
    client = create_app(LocalLake(tmp_path)).server.test_client()
    client.get("/")
    return client


def test_invented_fingerprints_queries_and_encodings_add_nothing(client, kept) -> None:
    client.get(SCRIPT, headers={"Accept-Encoding": "gzip"})
    once = kept[0].bytes
    assert 0 < once < 1_000_000
    described = (f"gzip;q=0.{n}, x{n}" for n in range(300))
    for n, encoding in enumerate(described):
        for path in (f"{SUITE}/dash_core_components.v{n}m{n:x}.js", f"{SCRIPT}?{n}", f"{SCRIPT}?a={n}#b"):
            response = client.get(path, headers={"Accept-Encoding": encoding})
            assert "gzip" == response.headers["Content-Encoding"]
    assert once == kept[0].bytes


def test_pages_searches_exports_and_errors_are_not_kept(client, kept) -> None:
    for n in range(50):
        for path in (f"/?{n}", f"/group?group={n}", f"/rows?q={n}", f"/search?q={n}", f"{SUITE}/{n}.js", f"/x{n}.js"):
            client.get(path, headers={"Accept-Encoding": "br"})
    assert 0 == kept[0].bytes


def test_every_file_with_every_algorithm_stays_below_the_limit(client, kept) -> None:
    paths = _files()
    for path, encoding in product(paths, ("gzip", "br", "zstd", "deflate")):
        assert 200 == client.get(path, headers={"Accept-Encoding": encoding}).status_code
    assert 0 < kept[0].bytes <= compression.MOST_BYTES


def _files() -> list[str]:
    names = ("dash_core_components.js", "async-graph.js", "async-markdown.js", "async-upload.js", "async-slider.js")
    return [f"{SUITE}/{name}" for name in names]


def test_the_script_that_was_not_used_for_longest_makes_room(monkeypatch) -> None:
    monkeypatch.setattr(compression, "MOST_BYTES", 100)
    scripts = compression.Scripts()
    for name in "abc":
        scripts.set(f"gzip;{name}", b"x" * 33)
    assert scripts.get("gzip;a")
    scripts.set("gzip;d", b"x" * 33)
    assert [True, False, True, True] == [scripts.get(f"gzip;{name}") is not None for name in "abcd"]
    scripts.set("gzip;large", b"x" * 101)
    assert 0 == scripts.bytes


def test_what_is_kept_is_what_the_file_holds(client) -> None:
    plain = client.get(SCRIPT).data
    for _ in range(2):
        assert plain == gzip.decompress(client.get(SCRIPT, headers={"Accept-Encoding": "gzip"}).data)
