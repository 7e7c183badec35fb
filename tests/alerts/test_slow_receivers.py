"""A receiver that responds slowly, or never, takes a bounded time and delays no other receiver."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from jobs.alerting import http_post
from jobs.alerting.alertmanager import send as send_to_alertmanager
from jobs.alerting.delivery import Delivery
from jobs.alerting.http_post import NotAcceptedError, post
from jobs.config.errors import UserError
from jobs.config.receivers import Alertmanager, Webhook
from jobs.config.settings import Settings
from testing.waiting import wait_until
from tests.alerts.slow import KINDS, UNREAD, SlowReceiver
from tests.alerts.test_incidents import NOW, after, alert

pytestmark = pytest.mark.slow

LARGE = b"x" * 20_000_000
AT_MOST_S = 40.0
"""Without a deadline it would take for ever, and with one for each address 99 seconds."""


@pytest.fixture(params=KINDS)
def slow(request) -> Iterator[SlowReceiver]:
    receiver = SlowReceiver(request.param)
    yield receiver
    receiver.stop()


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(http_post, "TIMEOUT_S", 1.0)
    monkeypatch.setenv("SECRET", "k")


def test_one_post_takes_no_longer_than_its_deadline(slow, hurried) -> None:
    began = time.monotonic()
    with pytest.raises(NotAcceptedError):
        post(slow.url, b"{}", {})
    assert time.monotonic() - began < AT_MOST_S


def test_a_deadline_ends_tls_that_is_not_answered(hurried) -> None:
    receiver = SlowReceiver("a status line without end")
    began = time.monotonic()
    with pytest.raises(NotAcceptedError):
        post(receiver.url.replace("http:", "https:"), b"{}", {})
    assert time.monotonic() - began < AT_MOST_S
    receiver.stop()


def test_a_deadline_ends_a_body_that_nobody_reads(hurried) -> None:
    receiver = SlowReceiver(UNREAD)
    began = time.monotonic()
    with pytest.raises(NotAcceptedError, match="no answer within 1 s"):
        post(receiver.url, LARGE, {})
    assert time.monotonic() - began < AT_MOST_S
    receiver.stop()


def test_a_deadline_is_one_for_all_addresses_of_a_name(hurried, monkeypatch) -> None:
    nowhere = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"192.0.2.{n}", 9)) for n in range(1, 100)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: nowhere)
    began = time.monotonic()
    with pytest.raises(NotAcceptedError):
        post("http://receiver.example", b"{}", {})
    assert time.monotonic() - began < AT_MOST_S


def test_a_status_of_success_counts_however_its_body_goes_on(hurried) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def response() -> None:
        client, _ = server.accept()
        with client:
            client.recv(1_000)
            client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
            client.recv(1_000)

    answering = threading.Thread(target=response)
    answering.start()
    post(f"http://127.0.0.1:{server.getsockname()[1]}", b"{}", {})
    answering.join()
    server.close()


def delivery(*receivers: Alertmanager | Webhook, patience_s: float = 0.5) -> tuple[Delivery, list[str]]:
    printed: list[str] = []
    managers = tuple(each for each in receivers if isinstance(each, Alertmanager))
    hooks = tuple(each for each in receivers if isinstance(each, Webhook))
    settings = Settings(alertmanagers=managers, webhooks=hooks)
    return Delivery(settings=settings, say=printed.append, patience_s=patience_s), printed


def test_a_healthy_receiver_is_alerted_at_once_while_others_hang(slow, hurried, received, monkeypatch) -> None:
    monkeypatch.setattr(http_post, "TIMEOUT_S", 3 * AT_MOST_S)
    found, _ = delivery(
        Alertmanager(name="slow am", url=slow.url),
        Webhook(name="slow hook", url=slow.url, secret="env:SECRET"),
        Webhook(name="healthy", url=f"{received.url}/hook", secret="env:SECRET"),
    )
    rows = after([], alert())
    began = time.monotonic()
    rows = found.send(rows, found.due(rows, NOW), NOW)
    assert time.monotonic() - began < AT_MOST_S, "it waits for none of them"

    def healthy_has_it() -> bool:
        """The outcome may come later than `send` waits for it."""
        nonlocal rows
        rows = found.with_outcomes(rows, NOW)
        return [row["sent_to"] for row in rows] == [["healthy"]]

    wait_until(healthy_has_it)
    assert 1 == len(received.bodies("/hook"))
    second = after(rows, alert(), alert("b"), now=NOW + 1_000)
    found.send(second, found.due(second, NOW + 1_000), NOW + 1_000)
    wait_until(lambda: 2 == len(received.bodies("/hook")))
    assert slow.most_at_once <= 2


def test_nothing_piles_up_before_a_name_that_is_not_found(hurried, monkeypatch) -> None:
    asked, done = [], threading.Event()

    def hang(*address, **_):
        asked.append(address)
        done.wait()
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    found, printed = delivery(Webhook(name="hook", url="https://nowhere.example", secret="env:SECRET"), patience_s=0.05)
    rows = after([], alert())
    threads = threading.active_count()
    for turn in range(20):
        now = NOW + turn * 10_000
        rows = found.send(rows, found.due(rows, now), now)
    wait_until(lambda: asked)
    assert 1 == len(asked)
    assert threading.active_count() <= threads + 2
    assert not found.is_up["hook"]
    assert 1 == len(printed)
    done.set()
    wait_until(lambda: [row for row in found.with_outcomes(rows, NOW) if row["last_error"]])


def test_an_outcome_that_comes_late_is_kept_and_nothing_is_sent_twice(hurried, received, monkeypatch) -> None:
    found, _ = delivery(Webhook(name="hook", url=f"{received.url}/hook", secret="env:SECRET"), patience_s=0.0)
    rows = after([], alert())
    rows = found.send(rows, found.due(rows, NOW), NOW)
    wait_until(lambda: received.bodies("/hook"))
    # The outcome was not collected: neither is the alert sent again.
    if not rows[0]["sent_to"]:
        assert [] == found.due(rows, NOW)["hook"]

    def collected() -> bool:
        nonlocal rows
        rows = found.with_outcomes(rows, NOW)
        return rows[0]["sent_to"] == ["hook"]

    wait_until(collected)
    assert [] == found.due(rows, NOW + 60_000)["hook"]
    assert 1 == len(received.bodies("/hook"))


def test_a_late_outcome_counts_for_the_state_that_was_sent_only(hurried, received) -> None:
    found, _ = delivery(Webhook(name="hook", url=f"{received.url}/hook", secret="env:SECRET"), patience_s=0.0)
    rows = after([], alert())
    found.send(rows, found.due(rows, NOW), NOW)
    wait_until(lambda: received.bodies("/hook"))
    resolved = after(rows, now=NOW + 1_000)

    def collected() -> bool:
        nonlocal resolved
        resolved = found.with_outcomes(resolved, NOW + 1_000)
        return not found._couriers

    wait_until(collected)
    assert [[]] == [row["sent_to"] for row in resolved]
    assert 1 == len(found.due(resolved, NOW + 1_000)["hook"])


def test_a_hook_that_takes_long_for_each_alert_gets_them_in_several_batches(hurried, received, monkeypatch) -> None:
    monkeypatch.setattr("jobs.alerting.webhook.BATCH_S", -1.0)
    found, _ = delivery(Webhook(name="hook", url=f"{received.url}/hook", secret="env:SECRET"), patience_s=120.0)
    rows = after([], alert("a"), alert("b"))
    rows = found.send(rows, found.due(rows, NOW), NOW)
    assert [[], []] == [row["sent_to"] for row in rows]
    assert 2 == len(found.due(rows, NOW)["hook"])


@pytest.mark.parametrize("value", ["", " ", "\n"])
def test_a_webhook_with_an_empty_secret_is_refused(monkeypatch, tmp_path, value) -> None:
    monkeypatch.setenv("SECRET", value)
    (tmp_path / "secret").write_text(value)
    for reference in ("env:SECRET", f"file:{tmp_path / 'secret'}"):
        with pytest.raises(UserError, match=r"secret of the webhook hook .*empty"):
            Webhook(name="hook", url="https://x", secret=reference).key()


def test_a_response_is_read_within_a_limit(hurried, received) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    sent = []

    def response() -> None:
        client, _ = server.accept()
        with client:
            client.recv(1_000)
            client.sendall(b"HTTP/1.1 500 No\r\n\r\n")
            try:
                for _ in range(10_000):
                    client.sendall(b"z" * 65_536)
                    sent.append(65_536)
            except OSError:
                pass

    answering = threading.Thread(target=response)
    answering.start()
    url = f"http://127.0.0.1:{server.getsockname()[1]}"
    (error,) = send_to_alertmanager(
        Alertmanager(name="am", url=url), after([], alert()), NOW, 60_000, lambda _: ""
    ).values()
    answering.join()
    server.close()
    assert len(error) < 400
    assert sum(sent) < 50_000_000
