"""The time axis, with ticks in the page's zone. Plotly's own ticks are always in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from dashboards.zone import instants_of, local, rounded_down

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
STEPS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500,
    *(n * SECOND for n in (1, 2, 5, 10, 15, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14, 28, 91, 182, 364, 1820, 7280, 36_400)),
)  # fmt: skip
MOST = 9


def time_axis(start: int, end: int) -> dict[str, Any]:
    """Return Plotly's x axis from `start` to `end` (epoch milliseconds)."""
    ticks = _ticks(start, end)
    return {
        "type": "date",
        "range": [start, end],
        "tickmode": "array",
        "tickvals": [at for at, _ in ticks],
        "ticktext": [text for _, text in ticks],
        "tickangle": 0,
        "zeroline": False,
    }


def _ticks(start: int, end: int) -> list[tuple[int, str]]:
    """Return (timestamp, text) at round local times of the zone; the date is below each tick at which it changes."""
    step = next((step for step in STEPS if (end - start) / step <= MOST), STEPS[-1])
    width, wall = timedelta(milliseconds=step), local(start).replace(tzinfo=None)
    wall = rounded_down(wall, width)
    found: set[int] = set()
    for i in range(MOST + 2):
        found |= instants_of(wall + i * width)
    out: list[tuple[int, str]] = []
    day = ""
    for at in sorted(at for at in found if start <= at <= end):
        shown = local(at)
        date = f"{shown:%b} {shown.day}"
        if step >= DAY:
            out.append((at, f"{date}<br>{shown.year}" if day != str(shown.year) else date))
            day = str(shown.year)
        else:
            text = _time(shown, step)
            out.append((at, f"{text}<br>{date}, {shown.year}" if day != date else text))
            day = date
    return out


def _time(shown: datetime, step: int) -> str:
    if step < SECOND:
        return f"{shown:%H:%M:%S}.{shown.microsecond // 1000:03d}"
    return f"{shown:%H:%M:%S}" if step < MINUTE else f"{shown:%H:%M}"
