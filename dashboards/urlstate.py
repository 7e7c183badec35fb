"""Page addresses: the URL alone determines the content of a page.

Ids are in the query string, never in the path, because Werkzeug decodes `%2F` before it routes. Unknown keys are
ignored. A bad value is replaced by the default, with a visible notice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from dashboards.zone import instants_of, known, shown_in_zone

SPANS = {
    "now-15m": ("15 m", 15 * 60_000),
    "now-1h": ("1 h", 3_600_000),
    "now-6h": ("6 h", 6 * 3_600_000),
    "now-24h": ("24 h", 24 * 3_600_000),
    "now-7d": ("7 d", 7 * 24 * 3_600_000),
}
"""Value of `from` → label and milliseconds."""

ALL = "all"
LONGEST_ID = 512
"""Longer ids are replaced by their hash, in `gid`: servers limit request lines to about 4 KiB, and Kafka allows ids of
32 KiB.
"""

LANES_PINNED = 12
HEAT_BY_COUNT = "rebalances"


class Page(NamedTuple):
    """A page; `name` is its module in `dashboards.pages`, whose `render` builds the page.

    `key` is the keyboard shortcut, and None for a page outside the menu. `has_range` is False for a page without a time
    range: such a page is rebuilt only after a table changes, and its expanded parts stay expanded.
    """

    name: str
    key: str | None = None
    has_range: bool = True


PAGES = (
    Page("fleet", "g f"),
    Page("group"),
    Page("rebalance", has_range=False),
    Page("causes", "g c"),
    Page("storms", "g s"),
    Page("deploys", "g d"),
    Page("advice", "g a", has_range=False),
    Page("reassignments", "g r"),
    Page("health", "g h"),
)
"""All pages. The first is the start page; those with a key are in the menu, in this order."""

PATHS = {f"/{page.name}" if position else "/": page.name for position, page in enumerate(PAGES)}
DOCUMENT = "/incident"
"""Path of incident documents (`dashboards.web.incidents`), which are no page of the application."""
TRACE = "/trace.json"
"""Path of a group's trace (`dashboards.web.traces`)."""
FILES = {"incident": DOCUMENT, "trace": TRACE}
"""Paths that are no pages of the application."""
SPLITS = ("cluster", "team", "group")
"""Values of `by`. Without it, losses are split by verdict and cause."""

MOMENT = re.compile(r"[0-9]{1,15}")
WALL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{3})?)?")
"""Format in which browsers send a `datetime-local` field."""
LATEST = 253_000_000_000_000
"""A time in the year 9987, which `datetime` can represent in every zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The parsed address of a page.

    `start` and `end` are `now-1h`, `all` or epoch milliseconds; local times are converted to epoch milliseconds. `tz`
    is empty for UTC. `zoom` holds the first and last millisecond of the visible part, on a page with a fixed span (a
    rebalance, a storm). `lanes` holds the labels of the members at the top of a group's page. `heat` is what the
    heatmap of the fleet shows: `rebalances`, or empty for the loss. `at`, `deploy` (the start of a deploy) and
    `against`, to compare either with, are instants in milliseconds. `by` is one of SPLITS; `team`, `verdict` and
    `cause` limit the sums of losses.
    """

    page: str | None
    cluster: str = ""
    group: str = ""
    gid: str = ""
    incarnation: int = 0
    generation: int | None = None
    start: str = ""
    end: str = ""
    q: str = ""
    storm: str = ""
    deploy: int | None = None
    against: int | None = None
    skip: int = 0
    tz: str = ""
    zoom: tuple[int, int] | None = None
    lanes: tuple[str, ...] = ()
    heat: str = ""
    at: int | None = None
    by: str = ""
    team: str = ""
    verdict: str = ""
    cause: str = ""
    notices: tuple[str, ...] = ()

    def href(self, page: str, **changes: object) -> str:
        """Return the address of `page`, of an `incident` document or of a `trace`, with this state's range and zone.

        `changes` are other parts of the address (`cluster`, `from_`, …).
        """
        values = {"from": self.start, "to": self.end, "tz": self.tz} | {k.rstrip("_"): v for k, v in changes.items()}
        group = values.get("group")
        if isinstance(group, str) and len(group.encode("utf-8", "replace")) > LONGEST_ID:
            del values["group"]
            values["gid"] = group_hash(group)
        lanes = values.pop("lanes", ())
        pairs = [(k, str(v)) for k, v in values.items() if v not in (None, "") or k == "group"]
        pairs += [("lanes", label) for label in lanes] if isinstance(lanes, tuple) else []
        path = FILES.get(page) or next(path for path, name in PATHS.items() if name == page)
        return f"{path}?{urlencode(pairs, quote_via=quote, safe='')}" if pairs else path


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open span in epoch milliseconds. If `is_live`, its end moves with the clock."""

    start: int
    end: int
    is_live: bool

    @property
    def width(self) -> int:
        return self.end - self.start


def group_hash(group: str) -> str:
    """Return the value of `gid` for a group id."""
    return sha256(group.encode("utf-8", "replace")).hexdigest()[:32]


def parse(pathname: str | None, search: str | None) -> State:
    """Return the state of an address; never raises."""
    pairs = parse_qsl((search or "").removeprefix("?"), keep_blank_values=True, errors="replace")
    values = dict(pairs)
    state = State(
        page=PATHS.get(pathname or "/"),
        cluster=values.get("cluster", ""),
        group=values.get("group", ""),
        gid=values.get("gid", ""),
        q=values.get("q", "")[:LONGEST_ID],
        storm=values.get("storm", "")[:LONGEST_ID],
        heat=HEAT_BY_COUNT if values.get("heat") == HEAT_BY_COUNT else "",
        team=values.get("team", "")[:LONGEST_ID],
        verdict=values.get("verdict", "")[:LONGEST_ID],
        cause=values.get("cause", "")[:LONGEST_ID],
        lanes=tuple(dict.fromkeys(text[:LONGEST_ID] for key, text in pairs if key == "lanes" and text))[:LANES_PINNED],
    )
    notices: list[str] = []
    by = values.get("by", "")
    if by and by not in SPLITS:
        notices.append(f"The address's “by” is not one of {', '.join(SPLITS)}: the losses are split by cause.")
        by = ""
    incarnation = _whole(values, "incarnation", notices)
    skip = _whole(values, "skip", notices)
    tz = values.get("tz", "")
    if tz and known(tz) is None:
        notices.append("The address's “tz” is no zone of the IANA database: times are UTC.")
    if known(tz) is None or tz == "UTC":
        tz = ""
    with shown_in_zone(tz):
        start, end = _moment(values.get("from", ""), min), _moment(values.get("to", ""), max)
        at = _instant(values, "at", notices)
        against, deploy = _instant(values, "against", notices), _instant(values, "deploy", notices)
    if start and start not in (ALL, *SPANS) and not start.isdecimal():
        notices.append("The address's “from” is no time range: showing the default range.")
        start = end = ""
    if end and not (start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        notices.append("The address's “to” does not fit its “from”: showing up to now.")
        end = ""
    return replace(
        state,
        at=at,
        against=against,
        by=by,
        incarnation=incarnation or 0,
        skip=max(0, skip or 0),
        generation=_whole(values, "generation", notices),
        start=start,
        end=end,
        tz=tz,
        deploy=deploy,
        zoom=_zoom(values.get("zoom", ""), notices),
        notices=tuple(notices),
    )


def _moment(text: str, of_two: Callable[[set[int]], int]) -> str:
    """Return epoch milliseconds as digits, from digits or a local time of the zone; return other text unchanged.

    A time outside the calendar becomes `?`.
    """
    if WALL.fullmatch(text):
        try:
            text = str(of_two(instants_of(datetime.fromisoformat(text))))
        except (ValueError, OverflowError):  # the day or the year does not exist
            return "?"
    if MOMENT.fullmatch(text):
        return str(int(text)) if int(text) <= LATEST else "?"
    return "?" if text.isdecimal() else text


def _instant(values: dict[str, str], key: str, notices: list[str]) -> int | None:
    text = _moment(values.get(key, ""), min)
    if text and not text.isdecimal():
        notices.append(f"The address's “{key}” is no time.")
    return int(text) if text.isdecimal() else None


def _zoom(text: str, notices: list[str]) -> tuple[int, int] | None:
    first, _, last = text.partition("-")
    if not text:
        return None
    if not (MOMENT.fullmatch(first) and MOMENT.fullmatch(last) and int(first) < int(last) <= LATEST):
        notices.append("The address's “zoom” is no span of time: showing all of it.")
        return None
    return int(first), int(last)


def _whole(values: dict[str, str], key: str, notices: list[str]) -> int | None:
    text = values.get(key, "")
    if not text:
        return None
    if not re.fullmatch(r"-?[0-9]{1,10}", text) or abs(int(text)) >= 2**31:
        notices.append(f"The address's “{key}” is no number Kafka could have given.")
        return None
    return int(text)


def live_window(name: str, now: int) -> Window:
    """Return the span of a relative range, such as `now-1h`. It ends up to a 200th of its width after `now`."""
    width = SPANS[name][1]
    # Requests within a 200th of the width get the same range, so they share cached responses.
    end = -(-now // (width // 200)) * (width // 200)
    return Window(end - width, end, is_live=True)


def window(state: State, now: int, observed: tuple[int, int] | None) -> tuple[Window, str]:
    """Return the span to show, and the value of `from` that names it.

    If the address has no range, the span is the last hour, or everything if nothing was observed in the last hour.
    `observed` holds the first and newest known timestamps, or None if there are none.
    """
    start = state.start
    if not start:
        start = ALL if observed and observed[1] < live_window("now-1h", now).start else "now-1h"
    if start == ALL:
        first, last = observed or (now - SPANS["now-1h"][1], now)
        margin = max(1000, (last - first) // 50)
        return Window(first - margin, last + margin, is_live=False), start
    if start in SPANS:
        return live_window(start, now), start
    end = int(state.end) if state.end else max(now, int(start) + 1000)
    return Window(int(start), end, is_live=not state.end), start
