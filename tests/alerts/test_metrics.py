"""The metrics for Prometheus are well formed, and their number does not grow with the number of groups."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from dashboards.lake.lake import LocalLake
from jobs.alerting.delivery import Delivery
from jobs.alerting.exposition import Metric, exposition
from jobs.alerting.metrics import groups_named, metrics
from jobs.alerting.metrics_server import LATE_S, MetricsServer, metrics_token
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from pipelines.gold.alerts.alert import Facts
from pipelines.gold.alerts.freshness import Freshness
from schemas.gold import GROUP_HEALTH
from schemas.silver import GROUPS, REASSIGNMENTS
from testing.alerts.rows import CLUSTER, HOUR, MINUTE, NOW, health, rebalancing, stalled, storm, write
from tests.ui.web.half_open import KINDS, held

LINE = re.compile(
    r'(?:# (?:HELP|TYPE) .+|[a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\[\\n"])*"(?:,[a-z_]+="[^"\n]*")*\})? [-+0-9.einf]+)'
)


def exposed(warehouse, groups: int = 3, silent: int = 0, known: int = NOW) -> str:
    delivery = Delivery(settings=Settings(), say=print)
    delivery.accepted["am"] += 2
    delivery.is_up["am"] = True
    freshness = Freshness(known_until_ms=known, is_fresh=True, unread=0, silent_ms=silent)
    rows = {"rebalancing": [rebalancing(since=NOW - MINUTE)], "storms": [storm()]}
    facts = [Facts(cluster=CLUSTER, now_ms=NOW, freshness=freshness, **rows)]
    alert = {"cluster": CLUSTER, "alert_name": "KafkaRebalanceStorm", "severity": "page", "resolved_at": None}
    found = metrics(LocalLake(warehouse), facts, [alert], delivery, now_ms=NOW, groups=groups)
    return exposition(found)


@pytest.fixture
def filled(warehouse):
    hour = NOW // HOUR * HOUR
    described = {"rebalances": 2, "owned_resource_seconds": 3600.0}
    write(
        warehouse,
        GROUP_HEALTH,
        [
            health(hour - h * HOUR, n % 3, f"g{n}", lost_resource_seconds=float(n), **described)
            for n in range(50)
            for h in (0, 30)
        ],
    )
    write(warehouse, GROUPS, [rebalancing(f"g{n}") for n in range(50)])
    write(warehouse, REASSIGNMENTS, [stalled()])
    return warehouse


def test_every_line_is_well_formed(filled):
    text = exposed(filled)
    assert [] == [line for line in text.splitlines() if not LINE.fullmatch(line)]
    assert text.endswith("\n")
    if promtool := shutil.which("promtool"):
        done = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        assert (0, "") == (done.returncode, done.stderr)


def test_values_are_those_of_the_tables(filled):
    text = exposed(filled)
    for line in (
        f'regroup_known_until_timestamp_seconds{{cluster="kafka"}} {NOW / 1000!r}',
        'regroup_open_alerts{cluster="kafka",alert="KafkaRebalanceStorm",severity="page"} 1.0',
        'regroup_open_alerts{cluster="kafka",alert="KafkaMemberFlapping",severity="page"} 0.0',
        'regroup_oldest_open_rebalance_seconds{cluster="kafka"} 60.0',
        'regroup_lost_resource_seconds_total{cluster="kafka"} 2450.0',
        'regroup_rebalances_total{cluster="kafka"} 200.0',
        'regroup_groups{cluster="kafka",state="PreparingRebalance"} 50.0',
        'regroup_reassignments{cluster="kafka",state="stalled"} 1.0',
        'regroup_group_lost_resource_seconds{cluster="kafka",group="g49"} 49.0',
        'regroup_alerts_taken_total{receiver="am"} 2.0',
    ):
        assert line in text.splitlines()


def test_an_open_rebalance_is_as_old_as_is_known(filled):
    text = exposed(filled, known=NOW - 20_000)
    assert 'regroup_oldest_open_rebalance_seconds{cluster="kafka"} 40.0' in text.splitlines()


@pytest.mark.parametrize(("silent", "storms"), [(0, 1.0), (31 * MINUTE, 0.0)])
def test_a_storm_is_open_as_long_as_its_alert(filled, silent, storms):
    assert f'regroup_open_storms{{cluster="kafka"}} {storms}' in exposed(filled, silent=silent).splitlines()


@pytest.mark.parametrize("groups", [0, 3, 20])
def test_only_so_many_groups_have_series_of_their_own(filled, groups):
    lines = exposed(filled, groups).splitlines()
    assert groups == len({line for line in lines if line.startswith("regroup_group_lost_resource_seconds{")})
    assert len([line for line in lines if "group=" in line]) == 3 * groups


def test_hostile_names_stay_within_their_quotes():
    text = exposition(
        [Metric(name="x", kind="gauge", help='a\nb"', labels=("group",), samples={('"} 1\ny{z="\\',): 1})]
    )
    assert ['# HELP x a\\nb"', "# TYPE x gauge", 'x{group="\\"} 1%0Ay{z=\\"\\\\"} 1.0'] == text.splitlines()


def test_they_are_served_on_loopback_and_nothing_else_is():
    server = MetricsServer(0)
    try:
        server.show([Metric(name="x", kind="gauge", help="y", samples={(): 1})])
        with urlopen(f"http://127.0.0.1:{server.port}/metrics") as response:
            assert "text/plain; version=0.0.4; charset=utf-8" == response.headers["Content-Type"]
            assert response.read().endswith(b"\nx 1.0\n")
        with pytest.raises(HTTPError, match="404") as refused:
            urlopen(f"http://127.0.0.1:{server.port}/")
        refused.value.close()
    finally:
        server.stop()


def status(
    port: int, host: str | None, path: str = "/metrics", method: str = "GET", authorization: str | None = None
) -> int:
    asked = HTTPConnection("127.0.0.1", port, timeout=120)
    asked.putrequest(method, path, skip_host=True)
    if host is not None:
        asked.putheader("Host", host)
    if authorization is not None:
        asked.putheader("Authorization", authorization.encode("latin-1"))
    asked.endheaders()
    found = asked.getresponse().status
    asked.close()
    return found


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    running = MetricsServer(0)
    yield running
    running.stop()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:8060", 200), ("localhost:8060", 200), ("[::1]:8060", 200), ("127.0.0.2", 200),
        ("evil.example:8060", 403), ("127.0.0.1.evil.example", 403), ("10.0.0.1", 403), ("", 403), (None, 403),
        ("[", 403), ("localhost.evil.example", 403), ("127.0.0.1@evil.example", 403), ("0.0.0.0", 403),
    ],
)  # fmt: skip
def test_only_this_machines_own_names_get_metrics(server, host, expected):
    assert expected == status(server.port, host)


def test_other_paths_and_methods_are_refused(server):
    assert 404 == status(server.port, "localhost", "/metrics/../x")
    assert 405 == status(server.port, "localhost", method="POST")


TOKEN = "a-token-of-scrapers"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"Bearer {TOKEN}", 200), (f"bearer {TOKEN} ", 200), (None, 401), (TOKEN, 401), (f"Basic {TOKEN}", 401),
        ("Bearer", 401), (f"Bearer {TOKEN}x", 401), ("Bearer ü", 401),
    ],
)  # fmt: skip
def test_with_a_token_whoever_sends_it_gets_metrics_by_any_name(header, expected):
    server = MetricsServer(0, token=TOKEN)
    try:
        assert expected == status(server.port, "regroup.monitoring.svc:8060", authorization=header)
        assert 200 == status(server.port, "10.0.0.7:8060", "/healthz")
    finally:
        server.stop()


def test_an_address_that_others_reach_requires_a_token(tmp_path):
    with pytest.raises(UserError, match=r"open to everybody who can reach 0\.0\.0\.0: set metrics_token"):
        metrics_token(Settings(metrics_host="0.0.0.0"))
    assert "" == metrics_token(Settings(metrics_host="0.0.0.0", metrics_port=0))
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    settings = Settings(metrics_host="0.0.0.0", metrics_token=f"file:{file}")
    assert TOKEN == metrics_token(settings)
    assert TOKEN in settings.secrets()
    assert TOKEN not in repr(settings)
    file.write_text("short")
    with pytest.raises(UserError, match="at least 16 characters"):
        metrics_token(settings)


def test_health_fails_when_no_evaluation_ends(server):
    assert 200 == status(server.port, None, "/healthz")
    server._shown_at -= LATE_S + 1
    assert 503 == status(server.port, None, "/healthz")
    server.show([])
    assert 200 == status(server.port, None, "/healthz")


@pytest.mark.parametrize("kind", KINDS)
def test_scrapes_are_answered_while_others_hold_connections(server, kind):
    threads = threading.active_count()
    with held(server.port, kind, 300):
        for _ in range(3):
            began = time.monotonic()
            assert 200 == status(server.port, "localhost")
            # Behind the others it would wait for ever.
            assert time.monotonic() - began < 60
        assert threading.active_count() <= threads + 1, "that of the test itself"


def test_with_readers_no_group_is_named(filled):
    assert 'group="' in exposed(filled, groups=5)
    assert 'group="' not in exposed(filled, groups=groups_named(Settings(readers={"@sre": [""]}, metrics_groups=5)))
    assert 5 == groups_named(Settings(metrics_groups=5))
