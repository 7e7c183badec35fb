"""Exactly the receivers in the settings get alerts, over an encrypted connection, with a signature nobody can forge."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from jobs.alerting.alert_links import runbook_url
from jobs.alerting.http_post import NotAcceptedError, post
from jobs.alerting.webhook import SIGNATURE, TIMESTAMP, send
from jobs.config.errors import UserError
from jobs.config.receivers import Webhook
from jobs.config.settings import Settings
from testing.alerts.receiving import free_port
from tests.alerts.test_incidents import NOW, after, alert


def load(tmp_path, text: str) -> Settings:
    file = tmp_path / "regroup.toml"
    file.write_text(text)
    return Settings.load(file, {})


def test_receivers_are_read_and_named(tmp_path):
    found = load(
        tmp_path,
        """
        stale_seconds = 60
        [[alertmanagers]]
        url = "https://am.example:9093"
        [[alertmanagers]]
        url = "http://am.internal:9093"
        name = "inside"
        plain_http = true
        [[webhooks]]
        url = "http://127.0.0.1:9/hook"
        secret = "env:SECRET"
        """,
    )
    assert ["am.example:9093", "inside"] == [a.name for a in found.alertmanagers]
    assert ["127.0.0.1:9"] == [hook.name for hook in found.webhooks]
    assert 60.0 == found.stale_seconds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[alertmanagers]]\nurl = "http://am.example:9093"', "without encryption: use https:// or"),
        ('[[webhooks]]\nurl = "http://hooks.example/x"\nsecret = "env:S"', "without encryption: use https://"),
        ('[[webhooks]]\nurl = "https://hooks.example/x"\nsecret = "hunter2"', "must be a reference"),
        ('[[webhooks]]\nurl = "https://hooks.example/x"', "has no secret"),
        ("[[alertmanagers]]\n", "has no url"),
        ('[[alertmanagers]]\nurl = "am:9093"', "is not an address"),
        ('[[alertmanagers]]\nurl = "https://am:99999"', "is not an address"),
        ('[[alertmanagers]]\nurl = "file:///etc/passwd"', "is not an address"),
        ('[[alertmanagers]]\nurl = "https://me:pw@am:9093"', "contains a user or password"),
        ('[[alertmanagers]]\nurl = "https://am"\nurls = "x"', "did you mean url?"),
        ('[[alertmanagers]]\nurl = "https://am"\nplain_http = "yes"', "must be true or false"),
        ('[[alertmanagers]]\nurl = "https://am"\n[[alertmanagers]]\nurl = "https://am"', "Two receivers"),
        ('[alertmanagers]\nurl = "https://am"', "must be a list of tables"),
        ("alertmanagers = [1]", "must be a table"),
        ("availability_target = 1.0", "between 0 and 1"),
        ('dashboard_url = "javascript:alert(1)"', "must be an address"),
        ('dashboard_url = "https://"', "must be an address with http:// or https:// and a host"),
        ('dashboard_url = "https://:8050/x"', "must be an address with http:// or https:// and a host"),
        ('runbook_url = "https://books:many"', "must be an address with http:// or https:// and a host"),
        ("stuck_second = 1", "did you mean stuck_seconds?"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(tmp_path, text, sentence):
    with pytest.raises(UserError) as refused:
        load(tmp_path, text)
    assert sentence in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "pw@" not in str(refused.value)


def test_a_webhook_is_signed_with_its_secret_and_the_time(received, monkeypatch):
    monkeypatch.setenv("SECRET", "k")
    hook = Webhook(name="hook", url=f"{received.url}/hook", secret="env:SECRET")
    (row,) = after([], alert())
    assert {0: None} == send(hook, [row], NOW, lambda _: "https://runbooks")
    ((path, headers, body),) = received.posts
    expected = hmac.new(b"k", f"{NOW // 1000}.".encode() + body, hashlib.sha256).hexdigest()
    assert ("/hook", str(NOW // 1000), f"sha256={expected}") == (path, headers[TIMESTAMP], headers[SIGNATURE])
    (message,) = received.bodies("/hook")
    assert ("firing", None, "orders") == (message["status"], message["endsAt"], message["labels"]["group"])
    assert "env:SECRET" not in repr(hook)


def test_a_secret_that_is_not_there_is_named(monkeypatch):
    monkeypatch.delenv("SECRET", raising=False)
    with pytest.raises(UserError, match="The secret of the webhook hook refers to the environment variable SECRET"):
        Webhook(name="hook", url="https://x", secret="env:SECRET").key()


@pytest.mark.parametrize(("status", "printed"), [(302, "answered 302"), (500, "answered 500"), (400, "answered 400")])
def test_anything_but_success_is_reported_and_no_redirect_is_followed(received, status, printed):
    received.status = status
    with pytest.raises(NotAcceptedError, match=printed):
        post(f"{received.url}/hook", b"{}", {})
    assert [] == received.posts


def test_nobody_there_is_reported_in_a_few_words():
    with pytest.raises(NotAcceptedError, match=r"^connection refused$"):
        post(f"http://127.0.0.1:{free_port()}/", b"{}", {})


def test_after_a_failure_a_webhook_is_not_tried_for_the_rest(monkeypatch):
    monkeypatch.setenv("SECRET", "k")
    hook = Webhook(name="hook", url=f"http://127.0.0.1:{free_port()}/", secret="env:SECRET")
    rows = after([], alert("a"), alert("b"))
    assert dict.fromkeys((0, 1), "connection refused") == send(hook, rows, NOW, str)


def test_the_runbook_is_where_the_settings_say():
    (row,) = after([], alert())
    for base, expected in (
        ("", "http://127.0.0.1:8050/runbooks/KafkaAvailabilityBurn"),
        ("https://wiki/books/", "https://wiki/books/KafkaAvailabilityBurn"),
        ("https://git/{alert}.md", "https://git/KafkaAvailabilityBurn.md"),
    ):
        assert expected == runbook_url(Settings(runbook_url=base), row)
