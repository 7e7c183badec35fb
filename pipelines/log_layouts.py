"""From a log line to its parts: when, which logger, what message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from schemas.controller_log import CONTROLLER_LOGGERS
from schemas.coordinator_log import NEW_LOGGERS, OLD_LOGGERS, WORKER_LOGGERS
from schemas.log_layouts import LAYOUTS

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONVERSIONS = {
    "d": r"(?P<at>.{19,35}?)",
    "m": r"(?P<message>.*)",
    "c": r"(?P<logger>[\w.$]{1,300})",
    "p": r"[A-Z]{4,5} *",
    "t": r".{0,200}?",
    "L": r"\d{1,9}",
    "X": r".{0,200}?",
    "n": "",
    "%": "%",
}
_ALIASES = {
    "date": "d",
    "msg": "m",
    "message": "m",
    "logger": "c",
    "level": "p",
    "thread": "t",
    "line": "L",
    "mdc": "X",
}
_CONVERSION = re.compile(r"%(?P<pad>[-.\d]*)(?P<word>[A-Za-z]+|%)(?P<option>\{[^}]*\})*")
_INSTANT = re.compile(
    r"(?P<minute>(?P<year>\d{4})-\d\d-\d\d[ T]\d\d:\d\d):(?P<second>[0-5]\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<offset>Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
# Group coordinators are older than the first year and brokers with a clock beyond the last one are not to be believed.
_YEARS = range(2015, 2100)


@dataclass(frozen=True, slots=True)
class Layout:
    """`pattern` matches a whole line, with the groups `at`, `logger` and `message`. `loggers` are the coordinators'
    and workers' loggers as this layout prints them, each with its class.
    """

    pattern: re.Pattern[str]
    loggers: Mapping[str, str]


@lru_cache
def layout(text: str) -> Layout:
    """A known name, a log4j conversion pattern, or a regular expression with the named groups of `Layout`.

    Raises:
        ValueError: it is none of these, in one sentence.
    """
    wanted = LAYOUTS.get(text, text)
    source = wanted if "(?P<" in wanted else _expression(wanted)
    try:
        pattern = re.compile(rf"(?s)(?:{source})\Z")
    except re.error as error:
        raise ValueError(f"The log layout {text!r} is not a valid regular expression: {error}.") from None
    if missing := {"at", "logger", "message"} - pattern.groupindex.keys():
        raise ValueError(
            f"The log layout {text!r} lacks {', '.join(sorted(missing))}: name one of {', '.join(LAYOUTS)}, or give a "
            "log4j pattern with %d, %c and %m, or a regular expression with the groups at, logger and message."
        )
    loggers = OLD_LOGGERS | NEW_LOGGERS | WORKER_LOGGERS | CONTROLLER_LOGGERS
    if re.search(r"%(c|logger)\{1\}", wanted):
        loggers = {name: name for name in loggers.values()}
    elif "(?P<" in wanted:
        loggers = {name: name for name in loggers.values()} | loggers
    return Layout(pattern, loggers)


def known_layout(text: str) -> Layout:
    """Return the layout of this name, or of the pattern that a known name stands for.

    Messages and captures are untrusted, so a pattern of their own is never compiled.

    Raises:
        ValueError: it is not a known layout.
    """
    if text not in LAYOUTS and text not in LAYOUTS.values():
        raise ValueError(
            f"The log layout {text[:60]!r} is not known: name one of {', '.join(LAYOUTS)}, or put it into the settings."
        )
    return layout(text)


def known_zone(name: str) -> ZoneInfo:
    """Return the time zone of this name, without a file lookup for a name that is none.

    Raises:
        ValueError: there is no such time zone.
    """
    if name not in _zone_names():
        raise ValueError(f"There is no time zone {name[:60]!r}: give a name such as UTC or Europe/Berlin.")
    return zone(name)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def _expression(log4j: str) -> str:
    """Return the regular expression of a conversion pattern.

    Matching takes time proportional to the line: numbers and names are bounded, and what precedes the message is
    matched once (an atomic group), because the message takes any text and another match of its prefix helps nothing.
    """
    pattern, at = "", 0
    for found in _CONVERSION.finditer(log4j):
        word = found["word"]
        kind = _ALIASES.get(word, word)
        if kind not in _CONVERSIONS:
            raise ValueError(f"The log layout {log4j!r} has %{word}, which is not known: use a regular expression.")
        pattern += re.escape(log4j[at : found.start()])
        pattern = f"(?>{pattern}){_CONVERSIONS[kind]}" if kind == "m" else pattern + _CONVERSIONS[kind]
        at = found.end()
    return pattern + re.escape(log4j[at:])


def zone(name: str) -> ZoneInfo:
    """Raises `ValueError`, in one sentence, for a name that is no time zone."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"There is no time zone {name!r}: give a name such as UTC or Europe/Berlin.") from None


def instant(text: str, zone: ZoneInfo) -> tuple[datetime, int] | None:
    """The earliest moment that `text` can mean, in UTC, and the width of what it can mean in ms; None if it is no time.

    Without milliseconds the width is a second. In the hour that the end of daylight saving time repeats, nothing in the
    line tells which one it was: the width then covers both.
    """
    found = _INSTANT.fullmatch(text)
    if found is None or int(found["year"]) not in _YEARS:
        return None
    start = _minute(found["minute"], found["offset"], zone)
    if start is None:
        return None
    at, repeated_ms = start
    fraction = found["fraction"]
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    return at + timedelta(seconds=int(found["second"]), microseconds=micros), repeated_ms + (1 if fraction else 1000)


@lru_cache(maxsize=4096)
def _minute(text: str, offset: str | None, zone: ZoneInfo) -> tuple[datetime, int] | None:
    try:
        if offset:
            return datetime.fromisoformat(text + offset).astimezone(UTC), 0
        local = datetime.fromisoformat(text).replace(tzinfo=zone)
        first, second = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    if first.astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        return None  # skipped when daylight saving time begins: no clock of this zone has shown it
    return first, int((second - first).total_seconds() * 1000)
