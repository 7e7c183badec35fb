"""The weekly report arrives once, late rather than never, at a real HTTP receiver and a real mail server."""

from __future__ import annotations

import json
import subprocess
import threading
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest

from dashboards.lake.lake import LocalLake
from dashboards.pages.operations import Operations
from dashboards.queries.health_store import HealthStore
from dashboards.teams import Teams
from jobs import notify
from jobs.alerting.metrics import _of_reports
from jobs.alerting.weekly.due_report import LATEST_MS
from jobs.alerting.weekly.sent_reports import TRIES
from jobs.alerting.weekly.slack_message import LONGEST_TEXT, MOST_BLOCKS
from jobs.alerting.weekly.weekly_reports import WeeklyReports
from jobs.config.report_section import ReportMail, ReportWebhook, WeeklyReport
from jobs.config.settings import Settings
from jobs.spark.spark_lake import lake_of
from jobs.tables.location import bind
from jobs.tables.tables import FolderTables, tables_at
from testing import sample
from testing.alerts.mail_server import MailServer
from testing.waiting import wait_until
from testing.warehouses import recorded
from tests.ui.pages.hostile import STRINGS

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
DUE = 1_795_420_800_000
"""Monday, 2026-11-23, 08:00 UTC; the week before is 2026-W47."""
INSIDE = DUE - 2 * DAY


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    folder = tmp_path_factory.mktemp("week")
    sample.write(folder, sample.merge({}, sample.everyday(INSIDE), sample.hostile(INSIDE, STRINGS[::25])))
    return folder


@pytest.fixture
def mail_server():
    server = MailServer()
    yield server
    server.stop()


@pytest.fixture
def settings(tmp_path, received, mail_server, monkeypatch):
    monkeypatch.setenv("CHAT", f"{received.url}/services/secret")
    return Settings(
        warehouse=tmp_path,
        teams=Teams.of({"billing": ["billing-*"], "imports": ["imports-*"]}),
        dashboard_url="https://regroup.example",
        report=WeeklyReport(
            webhooks=(
                ReportWebhook(name="all", url="env:CHAT"),
                ReportWebhook(name="billing chat", url="env:CHAT", team="billing"),
            ),
            mails=(
                ReportMail(
                    name="mail",
                    server="127.0.0.1",
                    port=mail_server.port,
                    security="none",
                    sender="regroup@example.com",
                    to=("sre@example.com", "lead@example.com"),
                ),
            ),
        ),
    )


def sender(settings, history, said=None) -> WeeklyReports:
    """A sender as after a restart: it remembers nothing but the table."""
    lake = partial(_Both, history, settings.warehouse)
    return WeeklyReports(
        settings=settings,
        tables=FolderTables(settings.warehouse),
        open_lake=lake,
        say=[].append if said is None else said.append,
    )


class _Both:
    """The history of one folder, and the runs of another."""

    def __init__(self, history, runs) -> None:
        self._history, self._runs = LocalLake(history), LocalLake(runs, fresh_seconds=0)

    def versions(self):
        return self._history.versions()

    def changed_at(self):
        return self._history.changed_at()

    def query(self, sql, tables, cap, parameters, prefixes=None):
        lake = self._runs if "job_runs" in tables else self._history
        return lake.query(sql, tables, cap, parameters, prefixes)


def texts(message):
    return [block["text"]["text"] for block in message["blocks"]]


def test_it_is_sent_once_also_after_a_restart(settings, history, received, mail_server) -> None:
    assert sender(settings, history).round(DUE - 1)
    assert ([], []) == (received.posts, mail_server.mails)
    running = sender(settings, history)
    assert running.round(DUE)
    assert running.round(DUE + MINUTE)
    assert sender(settings, history).round(DUE + HOUR)
    assert (2, 1) == (len(received.bodies("/services/secret")), len(mail_server.mails))
    assert sender(settings, history).round(DUE + 7 * DAY)
    assert (4, 2) == (len(received.posts), len(mail_server.mails))
    assert mail_server.mails[0]["Message-ID"] != mail_server.mails[1]["Message-ID"]


@pytest.mark.faults  # takes two minutes
def test_where_only_spark_reads_and_writes_the_tables_it_says_the_same_and_is_sent_once(
    settings, received, spark, tmp_path
) -> None:
    folder, elsewhere = tmp_path / "tables", tmp_path / "elsewhere"
    recorded.write(folder)
    bind(elsewhere, str(folder))
    # Spark needs a second for each of a report's questions.
    settings = replace(settings, report=WeeklyReport(webhooks=settings.report.webhooks[:1]))
    assert sender(settings, folder).round(DUE)
    for after in (0, MINUTE):
        by_spark = WeeklyReports(
            settings=replace(settings, warehouse=elsewhere),
            tables=tables_at(elsewhere, lambda: spark),
            open_lake=partial(lake_of, elsewhere),
            say=[].append,
        )
        assert by_spark.round(DUE + after)
    here, there = received.bodies("/services/secret")
    assert here == there


def test_a_report_of_groups_without_a_team_says_so_in_its_first_line(settings, history, received) -> None:
    webhook = ReportWebhook(name="the rest", url="env:CHAT", team="none")
    sender(replace(settings, report=WeeklyReport(webhooks=(webhook,))), history).round(DUE)
    (message,) = received.bodies("/services/secret")
    assert message["text"].startswith("Rebalances of groups without a team in week 2026-W47: ")


def test_the_message_of_a_chat_has_the_week_within_slacks_limits(settings, history, received) -> None:
    sender(settings, history).round(DUE)
    whole, of_team = received.bodies("/services/secret")
    assert whole["text"].startswith("Rebalances in week 2026-W47: ")
    assert of_team["text"].startswith("Rebalances of team billing in week 2026-W47: ")
    for message in (whole, of_team):
        assert 3 < len(message["blocks"]) <= MOST_BLOCKS
        assert all(0 < len(text) <= LONGEST_TEXT for text in texts(message))
        *blocks, link = message["blocks"]
        assert {"plain_text"} == {block["text"]["type"] for block in blocks}
        assert link["text"]["text"].startswith(
            "<https://regroup.example/causes?from=1794787200000&amp;to=1795392000000"
        )
        assert not any(character in text for text in texts({"blocks": blocks}) for character in "<>`[]@")
        assert "://" not in json.dumps(blocks)
    assert link["text"]["text"].endswith("&amp;team=billing|The week by cause>")
    assert "imports-joiner" in json.dumps(whole)
    assert "imports-joiner" not in json.dumps(of_team)
    assert "billing-worker" in json.dumps(of_team)


def test_the_mail_has_text_and_html_that_no_name_gets_out_of(settings, history, mail_server) -> None:
    sender(settings, history).round(DUE)
    (mail,), (raw,) = mail_server.mails, mail_server.raw
    assert ["sre@example.com", "lead@example.com"] == mail_server.recipients[0]
    assert mail["Subject"].strip().startswith("Rebalances in week 2026-W47: ")
    assert {"Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"} == set(
        mail.keys()
    )
    plain, page = mail.get_body(("plain",)).get_content(), mail.get_body(("html",)).get_content()
    for text in (plain, page):
        assert "billing-worker" in text
        assert "The week by cause" in text
    assert "<script" not in page.lower().replace("&lt;script", "")
    assert "<img" not in page.lower()
    assert b"\r\n\r\n" in raw


def test_a_team_from_the_settings_cannot_add_a_header(settings, history, mail_server) -> None:
    mails = tuple(replace(mail, name="x", team="a\r\nBcc: eve@example.com") for mail in settings.report.mails)
    teams = Teams({"a\r\nBcc: eve@example.com": ["billing-*"]})
    sender(replace(settings, teams=teams, report=WeeklyReport(mails=mails)), history).round(DUE)
    assert "Bcc" not in mail_server.mails[0]
    assert "Bcc: eve" in mail_server.mails[0]["Subject"]


def test_a_week_that_was_missed_is_sent_late_and_says_so(settings, history, received) -> None:
    assert sender(settings, history).round(DUE + 30 * HOUR)
    assert "This report is 30 h late." in texts(received.bodies("/services/secret")[0])
    later = sender(replace(settings, warehouse=settings.warehouse / "other"), history)
    assert later.round(DUE + LATEST_MS + 1)
    assert 2 == len(received.posts)


def test_outcomes_that_are_kept_for_a_day_allow_no_longer_delay(settings, history, received) -> None:
    assert sender(replace(settings, keep_operations_days=1), history).round(DUE + 30 * HOUR)
    assert [] == received.posts


def test_a_receiver_that_fails_is_tried_again_and_the_others_have_theirs(
    settings, history, received, mail_server
) -> None:
    said: list[str] = []
    mail_server.is_down = True
    running = sender(settings, history, said)
    assert not running.round(DUE)
    assert ((2, 0), False) == ((len(received.posts), len(mail_server.mails)), running.is_up["mail"])
    assert running.round(DUE + MINUTE - 1), "not yet"
    assert not running.round(DUE + MINUTE)
    samples = {metric.name: metric.samples for metric in _of_reports(running)}
    assert {("mail",): 2.0} == samples["regroup_reports_not_taken_total"]
    assert {("all",): 1.0, ("billing chat",): 1.0, ("mail",): 0.0} == samples["regroup_report_receiver_up"]
    health = HealthStore(LocalLake(settings.warehouse))
    wrong = Operations.of(health, DUE + 2 * MINUTE).wrong
    assert [("report to mail", "answered 421: not now")] == [(row["job"], row["error"]) for row in wrong]
    mail_server.is_down = False
    again = sender(settings, history, said)
    assert again.round(DUE + 2 * MINUTE), "a minute after the second attempt is too early"
    assert again.round(DUE + 3 * MINUTE)
    assert (2, 1) == (len(received.posts), len(mail_server.mails))
    assert [] == Operations.of(HealthStore(LocalLake(settings.warehouse)), DUE + HOUR).wrong
    assert "mail did not accept the report of week 2026-W47 (answered 421: not now): it is sent again." in said
    assert "mail has the report of week 2026-W47." in said


def test_attempts_end(settings, history, mail_server) -> None:
    mail_server.is_down = True
    report = replace(settings.report, webhooks=())
    running = sender(replace(settings, report=report), settings.warehouse)
    for hour in range(TRIES + 10):
        running.round(DUE + hour * HOUR)
    assert TRIES == running.failed["mail"]


def test_a_chat_that_refuses_is_named_without_its_address(settings, history, received) -> None:
    received.status = 404
    said: list[str] = []
    assert not sender(settings, history, said).round(DUE)
    assert any("all did not accept the report of week 2026-W47 (answered 404)" in line for line in said)
    assert "/services/" not in "".join(said)


def test_some_refused_addresses_are_an_error(settings, history, mail_server) -> None:
    mail_server.refuses = {"lead@example.com"}
    said: list[str] = []
    assert not sender(settings, history, said).round(DUE)
    assert any("took the mail, but refused 1 of 2 addresses" in line for line in said)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of this machine's own, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    file = folder / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
               "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"),
               "-out", str(folder / "certificate.pem")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    file.write_text((folder / "certificate.pem").read_text() + (folder / "key.pem").read_text())
    return file


@pytest.mark.parametrize("is_trusted", [True, False])
def test_mail_is_encrypted_and_logs_in_at_a_server_with_a_trusted_certificate(
    settings, history, certificate, monkeypatch, is_trusted
) -> None:
    server = MailServer(certificate=certificate, login=("regroup", "a password"))
    monkeypatch.setenv("MAIL_PASSWORD", "a password")
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    mail = ReportMail(
        name="mail", server="localhost", port=server.port, sender="regroup@example.com", to=("sre@example.com",),
        user="regroup", password="env:MAIL_PASSWORD",
    )  # fmt: skip
    said: list[str] = []
    running = sender(replace(settings, report=WeeklyReport(mails=(mail,))), history, said)
    assert is_trusted == running.round(DUE), said
    server.stop()
    assert int(is_trusted) == len(server.mails)
    assert is_trusted or any("certificate" in line.lower() for line in said), said


def test_the_zone_of_the_settings_begins_weeks_and_days(settings, history, received) -> None:
    report = replace(settings.report, zone="Asia/Kolkata", day="sunday", time="23:30", mails=())
    due = int(datetime(2026, 11, 22, 18, 0, tzinfo=UTC).timestamp() * 1000)
    running = sender(replace(settings, report=report), history)
    running.round(due - 1)
    assert [] == received.posts
    running.round(due)
    assert "in week 2026-W46" in received.bodies("/services/secret")[0]["text"], "the week of that Sunday is not over"
    assert "tz=Asia%2FKolkata" in texts(received.bodies("/services/secret")[0])[-1]


def test_notify_sends_it_while_a_chat_hangs_and_its_rounds_go_on(settings, received, monkeypatch) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    sample.write(settings.warehouse, sample.everyday(now))
    at = datetime.fromtimestamp(now / 1000, UTC)
    report = replace(settings.report, day=at.strftime("%A").lower(), time=at.strftime("%H:%M"), mails=())
    notifier = notify.Notifier(replace(settings, report=report, metrics_port=0, notify_seconds=0.2), say=lambda _: None)
    stopped = threading.Event()
    notify.Notifying(notifier=notifier).start(stopped)
    wait_until(lambda: len(received.posts) >= 2)
    stopped.set()
    assert 2 == len(received.bodies("/services/secret"))


def test_once_sends_what_is_due_and_a_missing_secret_is_named_at_the_start(settings, monkeypatch, received) -> None:
    now = int(datetime.now(UTC).timestamp() * 1000)
    sample.write(settings.warehouse, sample.everyday(now))
    at = datetime.fromtimestamp(now / 1000, UTC)
    report = replace(settings.report, day=at.strftime("%A").lower(), time=at.strftime("%H:%M"), mails=())
    changed = replace(settings, report=report)
    assert 0 == notify.run(changed, Namespace(once=True))
    assert 0 == notify.run(changed, Namespace(once=True))
    assert 2 == len(received.posts)
    monkeypatch.delenv("CHAT")
    with pytest.raises(notify.UserError, match="report's webhook all refers to the environment variable CHAT"):
        notify.run(changed, Namespace(once=True))
    monkeypatch.setenv("CHAT", "http://chat.example/hook")
    with pytest.raises(notify.UserError, match="is no address with https"):
        notify.run(changed, Namespace(once=True))
