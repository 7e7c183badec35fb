"""Sends the weekly report to its receivers, once each. A failed receiver is tried again and delays no other week.

The outcome is stored after sending. A crash between the two therefore repeats a message and loses none, as for alerts.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from dashboards.answers.blocks import Block, Heading, Links, Paragraph, html
from dashboards.answers.plain import plain_text
from dashboards.answers.report import Report, blocks, of_team, report, title
from dashboards.answers.weekly import in_zone
from dashboards.answers.why import NoAnswerError
from dashboards.lake.lake import Lake, LakeError
from dashboards.urlstate import State
from jobs.alerting.http_post import NotAcceptedError, post
from jobs.alerting.rounds import repeat_rounds
from jobs.alerting.weekly.due_report import LATE_MS, LATEST_MS, DueReport, due_report
from jobs.alerting.weekly.mail import mail_of, send_mail
from jobs.alerting.weekly.sent_reports import DeliveryAttempts, attempts, job_of, record
from jobs.alerting.weekly.slack_message import slack_message
from jobs.config.errors import UserError, one_line, without_secrets
from jobs.config.report_section import ReportMail, ReportWebhook, WeeklyReport
from jobs.config.settings import Settings
from jobs.tables.tables import Tables
from schemas.operations import JOB_RUNS
from schemas.thresholds import DAY_MS
from schemas.written import amount, count, duration

SECONDS = 20.0
"""Seconds between two checks of whether a report is due."""

Receiver = ReportWebhook | ReportMail
OfTeam = Callable[[str], Report]
"""The report of a team, or of all groups for an empty name."""


@dataclass(kw_only=True)
class WeeklyReports:
    """The receivers of the report of `settings`. `accepted`, `failed` and `is_up` count from the start of the process.

    `open_lake` opens the tables for one round, so that nothing is kept in memory for a week.
    """

    settings: Settings
    tables: Tables
    open_lake: Callable[[], Lake]
    say: Callable[[str], None]
    accepted: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    is_up: dict[str, bool] = field(default_factory=dict)
    _tried: dict[tuple[str, str], DeliveryAttempts] = field(default_factory=dict)
    """By week and receiver, because outcomes cannot be stored while a disk is full."""

    def check(self) -> None:
        """Raise `UserError` if a secret is missing at the place that the settings name."""
        for receiver in self._report.receivers:
            receiver.login() if isinstance(receiver, ReportMail) else receiver.address()

    def start(self, stopped: threading.Event) -> None:
        threading.Thread(target=self._until, args=[stopped], daemon=True).start()

    def round(self, now_ms: int) -> bool:
        """Send what is due; return whether no receiver failed.

        Raises:
            Exception: the tables cannot be read or written.
        """
        with in_zone(self._report.zone):
            due = due_report(self._report, now_ms, self._latest_ms)
            if due is None or not self._waiting(due, now_ms):
                return True
            lake = self.open_lake()
            self.tables.ensure(JOB_RUNS)
            self._remember(due, attempts(lake, due.range.name))
            waiting = self._waiting(due, now_ms)
            reports = cache(partial(self._of_team, lake, due))
            sent = [self._send_one(reports, receiver, due, now_ms) for receiver in waiting]
            return all(sent)

    def _waiting(self, due: DueReport, now_ms: int) -> list[Receiver]:
        """Return the receivers that, as far as this process knows, are to be tried now."""
        return [each for each in self._report.receivers if self._known(due, each.name).is_due(now_ms)]

    def _known(self, due: DueReport, name: str) -> DeliveryAttempts:
        return self._tried.get((due.range.name, name), DeliveryAttempts())

    def _remember(self, due: DueReport, stored: Mapping[str, DeliveryAttempts]) -> None:
        """Keep the stored attempts or those of this process, whichever got further. Other weeks are forgotten."""
        self._tried = {
            (due.range.name, each.name): max(
                stored.get(job_of(each.name), DeliveryAttempts()),
                self._known(due, each.name),
                key=lambda found: (found.is_sent, found.tries),
            )
            for each in self._report.receivers
        }

    @property
    def _report(self) -> WeeklyReport:
        assert self.settings.report is not None
        return self.settings.report

    @property
    def _latest_ms(self) -> int:
        # Outcomes that are no longer kept would not prevent a second report.
        days = self.settings.keep_operations_days
        return min(LATEST_MS, days * DAY_MS) if days else LATEST_MS

    def _until(self, stopped: threading.Event) -> None:
        def failed(why: str) -> None:
            self.say(f"The weekly report was not sent and will be retried: {why}")

        repeat_rounds(self.round, failed, seconds=SECONDS, stopped=stopped)

    def _of_team(self, lake: Lake, due: DueReport, team: str) -> Report:
        window, before, week = due.range
        return report(lake, window, before=before, week=week, teams=self.settings.teams, team=team)

    def _send_one(self, of_team: OfTeam, receiver: Receiver, due: DueReport, now_ms: int) -> bool:
        error, began = None, time.monotonic()
        try:
            self._deliver(of_team(receiver.team), receiver, due, now_ms)
        except (NotAcceptedError, NoAnswerError, LakeError, UserError) as refusal:
            error = self._without_secrets(one_line(refusal))
        except Exception as unexpected:  # noqa: BLE001 - reported for this receiver, and retried; others still get theirs
            error = self._without_secrets(f"{type(unexpected).__name__}: {one_line(unexpected)}")
        tries = self._known(due, receiver.name).tries + 1
        self._tried[due.range.name, receiver.name] = DeliveryAttempts(tries, now_ms, error is None)
        ended_ms = now_ms + round(1000 * (time.monotonic() - began))
        record(self.tables, receiver.name, due.range.name, now_ms, ended_ms, error)
        self._count(receiver.name, due, error)
        return error is None

    def _count(self, name: str, due: DueReport, error: str | None) -> None:
        was_up = self.is_up.get(name, True)
        self.is_up[name] = error is None
        (self.accepted if error is None else self.failed)[name] += 1
        if error is not None and was_up:
            self.say(f"{name} did not accept the report of week {due.range.name} ({error}): it is sent again.")
        elif error is None:
            self.say(f"{name} has the report of week {due.range.name}.")

    def _deliver(self, found: Report, receiver: Receiver, due: DueReport, now_ms: int) -> None:
        link = self._link(found)
        if isinstance(receiver, ReportWebhook):
            message = slack_message(self._blocks(found, due, now_ms), link, _subject(found))
            post(receiver.address(), json.dumps(message).encode(), {})
            return
        document = [*self._blocks(found, due, now_ms), Links([("The week by cause", link)])]
        mail = mail_of(
            receiver,
            subject=_subject(found),
            text=plain_text(document),
            html=html(document, title(found)),
            key=f"{due.range.name}\n{receiver.name}\n{receiver.team}",
            now_ms=now_ms,
        )
        send_mail(receiver, mail)

    def _blocks(self, found: Report, due: DueReport, now_ms: int) -> Iterator[Block]:
        for block in blocks(found, now_ms=now_ms, stale_ms=self.settings.stale_ms):
            yield block
            late_ms = now_ms - due.due_ms
            if isinstance(block, Heading) and block.level == 1 and late_ms >= LATE_MS:
                yield Paragraph(f"This report is {duration(late_ms)} late.")

    def _link(self, found: Report) -> str:
        zone = "" if self._report.zone == "UTC" else self._report.zone
        state = replace(State(page=None), start=str(found.window.start), end=str(found.window.end), tz=zone)
        return f"{self.settings.base_url}{state.href('causes', team=found.team)}"

    def _without_secrets(self, text: str) -> str:
        return without_secrets(text, self.settings.secrets())


def _subject(found: Report) -> str:
    """Return the main figures of the report in one line, without any name but the team's."""
    of = of_team(found)
    if not found.is_observed:
        return f"Rebalances{of} in week {found.week}: not observed"
    totals = found.totals
    return (
        f"Rebalances{of} in week {found.week}: {amount(totals['lost'])} resource-seconds lost in "
        f"{count(totals['rebalances'], 'rebalance')}"
    )
