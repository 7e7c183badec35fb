"""Requests that no page sends: paths, queries, headers and bodies, mutated, sent to the application in this process."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from testing import sample
from testing.fuzzing.callbacks import STRANGE, LogCollector, Responses

PATHS = (
    *["/rows"] * 6, "/search",
    "/", "/group", "/rebalance", "/causes", "/storms", "/health", "/rows", "/search", "/healthz", "/login",
    "/runbooks/stuck",
    "/assets/regroup.css", "/assets/plotly/plotly-cartesian.min.js", "/_dash-layout", "/_dash-dependencies",
    "/_dash-update-component", "/_reload-hash", "/_favicon.ico", "/static/x", "/nowhere",
    "/_dash-component-suites/dash/dcc/dash_core_components.js",
    "/_dash-component-suites/dash/dcc/dash_core_components.v4_4_1m1.js",
    "/_dash-component-suites/dash_ag_grid/dash_ag_grid.min.js.map",
    "/_dash-component-suites/nothing/at/all.js",
)  # fmt: skip
PIECES = (
    "..", "%2e%2e", "%00", "%ff", "%ed%a0%80", "//", "\\", ";", ".js", ".map", "v1m1", "\u202e", "etc/passwd",
    "x" * 3_000,
)  # fmt: skip
KEYS = (*["request"] * 12, "q", "from", "to", "tz", "cluster", "group", "gid", "next", "sort", "page", "at", "\u0000")
HEADERS = ("Accept-Encoding", "Range", "If-None-Match", "If-Modified-Since", "Cookie", "Authorization", "Content-Type",
           "X-Forwarded-User", "Accept", "If-Range", "Transfer-Encoding", "X-HTTP-Method-Override")  # fmt: skip
VALUES = ("gzip", "br;q=x", "zstd, *;q=0", "bytes=0-", "bytes=9-1,,-", '"x', 'W/"', "regroup=\xff", "Basic =",
        "\xff" * 99, "Thu, 99 Foo", "application/json; charset=\xff", "x" * 9_000, "")  # fmt: skip
ROWS: tuple[Any, ...] = (
    {"startRow": 0, "endRow": 100, "sortModel": [{"colId": "lost", "sort": "asc"}], "filterModel": {
        "group": {"type": "contains", "filter": "a"}, "rebalances": {"filter": 3}, "lost": {"filter": 1.5}}},
)  # fmt: skip


def requests(random: Random, count: int) -> Iterator[tuple[str, str, list[tuple[str, str]], bytes]]:
    """Yield method, address, headers and body."""
    for _ in range(count):
        path = random.choice(PATHS)
        if random.random() < 0.5:
            at = random.randrange(1, len(path) + 1)
            path = path[:at] + random.choice(PIECES) + path[at + random.randrange(3) :]
        query = "&".join(f"{quote(random.choice(KEYS))}={_value(random)}" for _ in range(random.randrange(4)))
        headers = [(random.choice(HEADERS), random.choice(VALUES)) for _ in range(random.randrange(3))]
        method = random.choice((*["GET"] * 12, "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "TRACE", "PROPFIND"))
        yield method, f"{path}?{query}", headers, random.randbytes(random.randrange(64))


def _value(random: Random) -> str:
    body = random.choice((*ROWS, *STRANGE))
    if isinstance(body, dict) and body and random.random() < 0.7:
        body = body | {random.choice(list(body)): random.choice(STRANGE)}
        if random.random() < 0.3:
            body = {"filterModel": {key: {"filter": random.choice(STRANGE)} for key in ("group", "rebalances", "lost")}}
    text = json.dumps(body)
    if random.random() < 0.1:
        text = "[" * random.choice((30, 1_200, 40_000)) + text
    if random.random() < 0.1:
        text = "9" * 5_000
    return quote(text.encode("utf-8", "surrogatepass"))


def send(folder: Path, *, count: int, seed: int = 1) -> tuple[Responses, list[str]]:
    """Send `count` requests to pages over a small warehouse; return the responses and the log."""
    sample.write(folder, sample.everyday(int(time.time() * 1000)))
    client = create_app(LocalLake(folder)).server.test_client()
    client.get("/")
    collector, responses = LogCollector(), Responses()
    logging.getLogger().addHandler(collector)
    try:
        for method, address, headers, body in requests(Random(seed), count):
            began = time.process_time()
            response = client.open(address, method=method, headers=headers, data=body, base_url="http://127.0.0.1")
            text = response.get_data()
            responses.slowest_s = max(responses.slowest_s, time.process_time() - began)
            responses.statuses[response.status_code] += 1
            if response.status_code >= 400 and (len(text) > 300 or b"Traceback" in text):
                responses.leaks.append(f"{method} {address[:200]} {text[:200]!r}")
            response.close()
    finally:
        logging.getLogger().removeHandler(collector)
    return responses, collector.lines
