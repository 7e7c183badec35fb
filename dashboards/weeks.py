"""Calendar weeks as in ISO 8601: from Monday, 00:00 in the zone in force (`dashboards.zone`), to the next Monday."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from dashboards.zone import instants_of, local

NAME = re.compile(r"([0-9]{4})-W([0-9]{2})")
YEARS = (1970, 9000)


class Week(NamedTuple):
    """A calendar week; `start` and `end` are epoch milliseconds. Clocks that are set make it longer or shorter."""

    name: str
    start: int
    end: int


def week_at(ms: int, weeks_before: int = 0) -> Week:
    """Return the week of a timestamp, or one that is a number of weeks before it. The earliest is of 1970."""
    day = local(ms).date() - timedelta(weeks=weeks_before)
    return _from(day - timedelta(days=day.weekday()))


def week_named(name: str) -> Week:
    """Return the week of a name such as `2026-W47`.

    Raises:
        ValueError: it is no name of a week.
    """
    found = NAME.fullmatch(name)
    if found is None or not YEARS[0] < int(found[1]) < YEARS[1]:
        raise ValueError(name)
    return _from(date.fromisocalendar(int(found[1]), int(found[2]), 1))


def _from(monday: date) -> Week:
    year, number, _ = monday.isocalendar()
    first, last = (min(instants_of(datetime.combine(day, time()))) for day in (monday, monday + timedelta(days=7)))
    return Week(f"{year}-W{number:02d}", max(0, first), last)


def moment_of(week: Week, day: int, hour: int, minute: int) -> int:
    """Return the timestamp of a time on a day of the week (0 is Monday), in the zone in force."""
    monday = local(week.start).date()
    return min(instants_of(datetime.combine(monday + timedelta(days=day), time(hour, minute))))
