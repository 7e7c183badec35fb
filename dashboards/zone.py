"""The zone in which a page tells its instants: UTC, or the one that its address names (`tz`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_IN_FORCE: ContextVar[tuple[str, tzinfo]] = ContextVar("zone", default=("UTC", UTC))
"""A page is made within one call: whatever it says of time follows, without a parameter through every function."""


def known(name: str) -> tzinfo | None:
    """The zone of an IANA name; None where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # `Europe` is a folder
        return None


@contextmanager
def shown_in_zone(name: str) -> Iterator[None]:
    """Instants are told in this zone within the block; in UTC where the name is empty or not known."""
    found = known(name) if name else None
    token = _IN_FORCE.set(("UTC", UTC) if found is None else (name, found))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def zone() -> str:
    """Its name, as every label says it."""
    return _IN_FORCE.get()[0]


def local(ms: int) -> datetime:
    """The instant (epoch milliseconds) on the clocks of the zone."""
    return datetime.fromtimestamp(ms // 1000, _IN_FORCE.get()[1]).replace(microsecond=ms % 1000 * 1000)


def instants_of(wall: datetime) -> set[int]:
    """Epoch milliseconds at which the zone's clocks show `wall`: two while they are put back."""
    at = _IN_FORCE.get()[1]
    return {round(wall.replace(tzinfo=at, fold=fold).timestamp() * 1000) for fold in (0, 1)}
