"""When the weekly report is due, and which week it is about."""

from __future__ import annotations

from typing import NamedTuple

from dashboards.answers.weekly import ReportRange, last_week
from dashboards.weeks import moment_of, week_at
from jobs.config.report_section import DAYS, WeeklyReport

LATEST_MS = 48 * 3_600_000
"""A report is sent up to this long after it was due, for example because notify was down."""

LATE_MS = 15 * 60_000
"""From this delay on, the report says that it is late."""


class DueReport(NamedTuple):
    """The report of the last whole week before it was due. `due_ms` is the time in the settings."""

    due_ms: int
    range: ReportRange


def due_report(report: WeeklyReport, now_ms: int, latest_ms: int = LATEST_MS) -> DueReport | None:
    """Return the newest report that was due at most `latest_ms` ago; None if there is none.

    The zone in force must be that of the report (`dashboards.answers.weekly.in_zone`).
    """
    hour, minute = map(int, report.time.split(":"))
    for weeks_before in (0, 1):
        due_ms = moment_of(week_at(now_ms, weeks_before), DAYS.index(report.day), hour, minute)
        if due_ms <= now_ms:
            return DueReport(due_ms, last_week(due_ms)) if now_ms - due_ms <= latest_ms else None
    return None
