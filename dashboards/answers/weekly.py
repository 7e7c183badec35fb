"""The calendar weeks of reports, and the zone in which reports are written."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import NamedTuple

from dashboards.teams import NO_TEAM, Teams
from dashboards.urlstate import Window
from dashboards.weeks import Week, week_at, week_named
from dashboards.zone import known, shown_in_zone

MOST_WEEKS = 520
WEEK_FORM = f"a name such as 2026-W47, or a number of weeks before this one from 0 to {MOST_WEEKS}"


class ReportRange(NamedTuple):
    """The range of a report and what it is compared with. `name` is that of a week, or empty."""

    window: Window
    before: Window
    name: str = ""


def in_zone(zone: str) -> AbstractContextManager[None]:
    """Write times and begin weeks in this zone within the block.

    Raises:
        ValueError: with a sentence, if there is no such zone.
    """
    if known(zone) is None:
        raise ValueError(f"There is no zone {zone[:60]!r}: write one of the IANA database, such as Europe/Berlin.")
    return shown_in_zone(zone)


def of_days(days: int, now_ms: int) -> ReportRange:
    """Return the range of the last days, and the same number of days before."""
    width = days * 86_400_000
    window = Window(now_ms - width, now_ms, is_live=False)
    return ReportRange(window, Window(window.start - width, window.start, is_live=False))


def of_week(text: str, now_ms: int) -> ReportRange:
    """Return a calendar week in the zone in force and the week before it; of this week, what is over of it.

    `text` is of the form WEEK_FORM.

    Raises:
        ValueError: with a sentence, if it is not, or the week has not begun.
    """
    try:
        is_number = text.isascii() and text.isdecimal() and len(text) < 10 and int(text) <= MOST_WEEKS
        week = week_at(now_ms, int(text)) if is_number else week_named(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} names no week: write {WEEK_FORM}.") from None
    if week.start >= now_ms:
        raise ValueError(f"The week {week.name} has not begun.")
    return _of(week, now_ms)


def last_week(now_ms: int) -> ReportRange:
    """Return the last whole calendar week in the zone in force, and the week before it."""
    return _of(week_at(now_ms, 1), now_ms)


def _of(week: Week, now_ms: int) -> ReportRange:
    before = week_at(week.start - 1)
    if week.end <= now_ms:
        return ReportRange(
            Window(week.start, week.end, is_live=False), Window(before.start, before.end, is_live=False), week.name
        )
    past = max(1, now_ms - week.start)
    return ReportRange(
        Window(week.start, week.start + past, is_live=False),
        # A week in which clocks are set back is an hour longer than the one before.
        Window(before.start, min(before.start + past, before.end), is_live=False),
        week.name,
    )


def check_team(teams: Teams, team: str) -> None:
    """Raise `ValueError`, with a sentence, if the settings have no such team."""
    if team and team not in (*teams.names, NO_TEAM):
        there = ", ".join(teams.names) or "none, because they have no section [teams]"
        raise ValueError(f"The settings have no team {team[:100]!r}: they have {there}.")
