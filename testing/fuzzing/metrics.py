"""Requests to the metrics port that Prometheus never sends: random hosts, paths, queries and methods.

Each goes to the port's application in this process, as the server passes it. Each must get status 200, 403, 404 or
405, and group names only for host names of this machine.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from jobs.alerting.metrics_server import MetricsServer

SECRET = "regroup_group_rebalances"
OWN = ("127.0.0.1", "localhost", "[::1]", "127.0.0.2")
HOSTS = (*OWN * 5, "", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1@evil.example",
         "evil.example#127.0.0.1", "[::1", "[::1]x", "::1", "0.0.0.0", "2130706433", "127.1", "\x00", "\ud800", "é",
         "localhost\t", "[fe80::1%25lo]", "x" * 9_000, "//127.0.0.1", "127.0.0.1:x", "user:pass@localhost")  # fmt: skip
PATHS = (
    *["/metrics"] * 6,
    "/metrics/",
    "/metrics\x00",
    "//metrics",
    "/METRICS",
    "/",
    "",
    "/é",
    "/\ud800",
    "/" + "m" * 9_000,
)
METHODS = (*["GET"] * 6, "HEAD", "POST", "PUT", "TRACE", "", "get", "GET ", "\x00")


@dataclass(slots=True)
class Responses:
    """The counts of the responses. `wrong` are responses that break these rules."""

    statuses: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


def requests(random: Random, count: int) -> Iterator[dict[str, Any]]:
    """Yield WSGI environments."""
    for _ in range(count):
        host = random.choice(HOSTS)
        if random.random() < 0.3:
            at = random.randrange(len(host) + 1)
            host = host[:at] + random.choice((":", "/", "@", "[", "]", "%", "\\", " ", "\xa0", "٣")) + host[at:]
        if random.random() < 0.3:
            host += f":{random.choice((0, 80, 8060, 65_536, -1, 10**30))}"
        environ = {"HTTP_HOST": host, "PATH_INFO": random.choice(PATHS), "REQUEST_METHOD": random.choice(METHODS)}
        if random.random() < 0.1:
            del environ["HTTP_HOST"]
        yield environ


def send(count: int, seed: int) -> Responses:
    found, server = Responses(), MetricsServer(0)
    server.text = SECRET
    try:
        for environ in requests(Random(seed), count):
            statuses: list[str] = []
            began = time.thread_time()
            try:
                body = b"".join(server._response(environ, lambda status, _, statuses=statuses: statuses.append(status)))  # noqa: SLF001
            except Exception as error:  # noqa: BLE001 - the run looks for exceptions
                found.wrong.append(f"{error!r:.200} for {environ!r:.300}")
                continue
            found.slowest_s = max(found.slowest_s, time.thread_time() - began)
            found.statuses[statuses[0]] += 1
            host = environ.get("HTTP_HOST", "").strip().lower()
            if statuses[0][:3] not in ("200", "403", "404", "405") or (
                SECRET.encode() in body and not any(name.strip("[]") in host for name in OWN)
            ):
                found.wrong.append(f"{statuses[0]} for {environ!r:.300}")
    finally:
        server.stop()
    return found
