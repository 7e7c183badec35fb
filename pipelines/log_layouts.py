"""Log layouts: patterns that split a log line into time, logger and message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from schemas.controller_log import CONTROLLER_LOGGERS, PARTITION_LOGGERS
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
_DETECTED_CONVERSIONS = {
    "d": r"(?P<at>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,:Z+-]{0,17})",
    "t": r"[^\]]{0,200}",
    "X": "",
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
# `%c{2}` prints the last two parts of the logger's name.
_LAST_PARTS = re.compile(r"%[-.\d]*(?:c|logger)\{(\d{1,2})\}")
_CONVERSION = re.compile(r"%(?P<pad>[-.\d]*)(?P<word>[A-Za-z]+|%)(?P<option>\{[^}]*\})*")
_INSTANT = re.compile(
    r"(?P<minute>(?P<year>\d{4})-\d\d-\d\d[ T]\d\d:\d\d):(?P<second>[0-5]\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?P<offset>Z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)
# Group coordinators did not exist before the first year. A clock beyond the last year is wrong.
_YEARS = range(2015, 2100)


@dataclass(frozen=True, slots=True)
class Layout:
    """A compiled layout. `pattern` matches a whole line, with the groups `at`, `logger` and `message`. `loggers` maps
    the loggers of coordinators, controllers and workers, as this layout prints them, to their classes.
    """

    pattern: re.Pattern[str]
    loggers: Mapping[str, str]


@lru_cache
def layout(text: str) -> Layout:
    """Return a layout from a known name, a log4j conversion pattern, or a regular expression.

    A regular expression has the named groups of `Layout.pattern`.

    Raises:
        ValueError: the text is none of these; the message is one sentence.
    """
    wanted = LAYOUTS.get(text, text)
    return _compiled(text, wanted, wanted if "(?P<" in wanted else _expression(wanted, _CONVERSIONS))


def detected_layout(text: str) -> Layout:
    """Return the layout of a known name or log4j pattern, for lines whose layout is not in the settings.

    A thread's name has no `]`: names of clients in the message cannot imitate the parts of another layout. `at` may be
    missing from the pattern.
    """
    wanted = LAYOUTS.get(text, text)
    expression = _expression(wanted, _CONVERSIONS | _DETECTED_CONVERSIONS)
    return _compiled(text, wanted, expression if "%d" in wanted else f"(?P<at>){expression}")


def _compiled(text: str, wanted: str, source: str) -> Layout:
    try:
        pattern = re.compile(rf"(?s)(?:{source})\Z")
    except re.error as error:
        raise ValueError(f"The log layout {text!r} is not a valid regular expression: {error}.") from None
    if missing := {"at", "logger", "message"} - pattern.groupindex.keys():
        raise ValueError(
            f"The log layout {text!r} lacks {', '.join(sorted(missing))}: name one of {', '.join(LAYOUTS)}, or give a "
            "log4j pattern with %d, %c and %m, or a regular expression with the groups at, logger and message."
        )
    loggers = OLD_LOGGERS | NEW_LOGGERS | WORKER_LOGGERS | CONTROLLER_LOGGERS | PARTITION_LOGGERS
    if "(?P<" in wanted:
        loggers = {name: name for name in loggers.values()} | loggers
    elif parts := _LAST_PARTS.search(wanted):
        loggers = {".".join(name.split(".")[-int(parts[1]) :]): short for name, short in loggers.items()}
    return Layout(pattern, loggers)


def known_layout(text: str) -> Layout:
    """Return a known layout, by its name or by its pattern.

    Messages and captures are untrusted, so a pattern of their own is never compiled.

    Raises:
        ValueError: the layout is not known.
    """
    if text not in LAYOUTS and text not in LAYOUTS.values():
        raise ValueError(
            f"The log layout {text[:60]!r} is not known: name one of {', '.join(LAYOUTS)}, or put it into the settings."
        )
    return layout(text)


def known_zone(name: str) -> ZoneInfo:
    """Return the time zone of this name. An unknown name causes no file lookup.

    Raises:
        ValueError: there is no such time zone.
    """
    if name not in _zone_names():
        raise ValueError(f"There is no time zone {name[:60]!r}: give a name such as UTC or Europe/Berlin.")
    return zone(name)


@lru_cache(maxsize=1)
def _zone_names() -> frozenset[str]:
    return frozenset(available_timezones())


def _expression(log4j: str, conversions: Mapping[str, str]) -> str:
    """Return the regular expression of a conversion pattern.

    The matching time is proportional to the line. Numbers and names have length limits. The part before the message is
    matched once (an atomic group): the message accepts any text, so another match of that part cannot help.

    Raises:
        ValueError: the pattern contains an unknown conversion, or abbreviates the logger's name.
    """
    pattern, at = "", 0
    for found in _CONVERSION.finditer(log4j):
        word = found["word"]
        kind = _ALIASES.get(word, word)
        if kind not in _CONVERSIONS:
            raise ValueError(f"The log layout {log4j!r} has %{word}, which is not known: use a regular expression.")
        if kind == "c" and found["option"] and not found["option"][1:-1].isdigit():
            raise ValueError(f"The log layout {log4j!r} has {found[0]}, which is not known: use a regular expression.")
        part = _padded(conversions[kind], kind, found["pad"])
        pattern += re.escape(log4j[at : found.start()])
        pattern = f"(?>{pattern}){part}" if kind == "m" else pattern + part
        at = found.end()
    return pattern + re.escape(log4j[at:])


def _padded(pattern: str, kind: str, pad: str) -> str:
    """Return the pattern of a level or logger with the spaces that `pad` puts before it, or after it if negative."""
    if kind not in ("p", "c") or not pad.strip("-."):
        return pattern
    if not pad.startswith("-"):
        return r" {0,300}" + pattern
    return pattern + r" {0,300}" if kind == "c" else pattern  # a level's pattern has the spaces after it


def zone(name: str) -> ZoneInfo:
    """Return the time zone of this name.

    Raises:
        ValueError: there is no such time zone; the message is one sentence.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"There is no time zone {name!r}: give a name such as UTC or Europe/Berlin.") from None


def parsed_time(text: str, zone: ZoneInfo) -> tuple[datetime, int] | None:
    """Return the earliest time in UTC that `text` can mean and its uncertainty in milliseconds, or None if it is no
    time.

    Without a fraction the uncertainty is one second. In the hour that is repeated when daylight saving time ends, a
    line does not show which of the two hours it means. The uncertainty then covers both.
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
        return None  # this time is skipped when daylight saving time begins
    return first, int((second - first).total_seconds() * 1000)
