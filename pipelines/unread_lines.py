"""Log lines that may be lifecycle lines but are not known: which ones count, and which ones are kept."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from pipelines.coordinator_events import UNREAD, Unreadable
from pipelines.coordinator_messages import NEW_PREFIX, OLD_PREFIXES
from schemas.controller_log import CONTROLLER_LOGGERS
from schemas.coordinator_log import NEW_LOGGERS, OLD_LOGGERS, WORKER_LOGGERS
from schemas.ignored_lines import IGNORED_LEVELS, IGNORED_LINES
from schemas.states import QuarantineReason
from schemas.visible import visible_text

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = 3
"""Lines that a batch keeps for each source and reason. Further lines are only counted."""

SAMPLE = 300
"""Characters of a line that `detail` shows."""

_LOGGERS = "|".join(map(re.escape, OLD_LOGGERS | NEW_LOGGERS | WORKER_LOGGERS | CONTROLLER_LOGGERS))
# A frame of a stack trace continues after the class, so it is not the name of a logger.
_NAMED = re.compile(rf"(?<![\w.$])(?:{_LOGGERS})(?![\w.$])")
_PREFIXES = (NEW_PREFIX, *OLD_PREFIXES.values())


def unread(line: str, why: Unreadable) -> Unreadable | None:
    """Return the reason with the beginning of the line, or None if the line cannot be a lifecycle line.

    A line in an unknown layout counts if it contains the name of a coordinator's, a controller's or a worker's logger,
    or a coordinator's prefix. A line with an unknown text counts if it is a group coordinator's and no rule in
    `schemas.ignored_lines` applies. Controllers and workers print many other lines, so theirs do not count.
    """
    if why.reason == QuarantineReason.UNKNOWN_LAYOUT:
        if not (_NAMED.search(line) or any(prefix.search(line) for prefix in _PREFIXES)):
            return None
        return Unreadable(why.reason, f"in no known layout: {visible_text(line[:SAMPLE])}")
    message = why.detail
    head = line.partition(message)[0]
    if not any(prefix.match(message) for prefix in _PREFIXES) or any(level in head for level in IGNORED_LEVELS):
        return None
    if any(text in message for text in IGNORED_LINES):
        return None
    return Unreadable(why.reason, f"no known text of a coordinator: {visible_text(message[:SAMPLE])}")


def sampled(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of `quarantine`, of unread lines only the first `KEPT` of each source and reason.

    The first of these rows has the number of lines that were left out, too, in its column `lines`.
    """
    kept: list[dict[str, Any]] = []
    first: dict[tuple[str, str], dict[str, Any]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row["reason"] not in UNREAD:
            kept.append(row)
            continue
        key = (row["source"], str(row["reason"]))
        seen[key] += 1
        if seen[key] <= KEPT:
            kept.append(row)
            first.setdefault(key, row)
        else:
            first[key]["lines"] += row["lines"]
    return kept
