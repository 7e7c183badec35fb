"""The known layouts that a log line may have if no setting names its layout, and the line without its prefixes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipelines.log_layouts import detected_layout
from schemas.log_layouts import COLORS_AT_END, DETECTED, DETECTED_IN_BRACKETS, LINE_PREFIXES, WITHOUT_TIME

if TYPE_CHECKING:
    from pipelines.log_layouts import Layout

_IN_BRACKETS = tuple(map(detected_layout, DETECTED_IN_BRACKETS))
_OTHERS = tuple(map(detected_layout, DETECTED))
_WITHOUT_TIME = tuple(map(detected_layout, WITHOUT_TIME))
_PREFIX = re.compile("|".join(f"(?:{prefix})" for prefix in LINE_PREFIXES))
_COLORS_AT_END = re.compile(COLORS_AT_END)
# For example docker compose's name, then its time, in front of a line with a time of its own.
_PREFIXES = 3


class Unprefixed(NamedTuple):
    """A line without its prefixes. `at` is the time of the innermost prefix, or None if no prefix has one."""

    text: str
    at: str | None


def candidates(line: str, *, is_timed: bool = False) -> tuple[Layout, ...]:
    """Return the known layouts that a line may have, in the order in which they must be tried.

    `is_timed` means that a prefix of the line has a time, so the line may have none.
    """
    first = line[:1]
    if first == "[":
        return _IN_BRACKETS
    if first.isdigit():
        return _OTHERS
    return _WITHOUT_TIME if is_timed else ()


def unprefixed(line: str) -> Unprefixed | None:
    """Return a line without the prefixes of container runtimes and shippers, or None if it has no such prefix."""
    start, at, is_colored = 0, None, False
    for _ in range(_PREFIXES):
        found = _PREFIX.match(line, start)
        if found is None:
            break
        start = found.end()
        at = found[found.lastgroup] if found.lastgroup else at
        is_colored |= line[start - 1] == "m"  # only a color ends so
    if not start:
        return None
    return Unprefixed(_COLORS_AT_END.sub("", line[start:]) if is_colored else line[start:], at)
