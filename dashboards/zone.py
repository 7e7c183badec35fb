"""The time zone of a page: UTC, or the zone in its address (`tz`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_IN_FORCE: ContextVar[tuple[str, tzinfo]] = ContextVar("zone", default=("UTC", UTC))
"""A page is built in one call, so a context variable passes the zone on without a parameter in every function."""


_MONDAY = datetime(1970, 1, 5)  # noqa: DTZ001 - as local time of any zone


def known(name: str) -> tzinfo | None:
    """Return the zone of an IANA name; None if there is no such zone."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # `Europe` is a folder of the database
        return None


@contextmanager
def shown_in_zone(name: str) -> Iterator[None]:
    """Show timestamps in this zone within the block; in UTC if the name is empty or unknown."""
    found = known(name) if name else None
    token = _IN_FORCE.set(("UTC", UTC) if found is None else (name, found))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def zone() -> str:
    """Return the zone's name, as labels show it."""
    return _IN_FORCE.get()[0]


def local(ms: int) -> datetime:
    """Convert a timestamp (epoch milliseconds) to local time in the zone."""
    return datetime.fromtimestamp(ms // 1000, _IN_FORCE.get()[1]).replace(microsecond=ms % 1000 * 1000)


def rounded_down(wall: datetime, width: timedelta) -> datetime:
    """Return local time rounded down to a multiple of `width`: a time of day, a day, or a Monday."""
    return wall - (wall - _MONDAY) % width


def instants_of(wall: datetime) -> set[int]:
    """Return the epoch milliseconds at which local time is `wall`: two while clocks are set back."""
    at = _IN_FORCE.get()[1]
    return {round(wall.replace(tzinfo=at, fold=fold).timestamp() * 1000) for fold in (0, 1)}
