"""Formatting of untrusted text and of numbers for display.

Names of groups, members, clients and hosts are untrusted. React escapes text in HTML elements. Plotly interprets a
subset of HTML, and MathJax between `$` signs, in every string that it draws, so all text in a figure must pass through
`figure_text`.
"""

from __future__ import annotations

from dashboards.zone import local, zone
from schemas import written
from schemas.visible import visible_text

ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})
LONGEST = 512
ABSENT = written.EN_DASH
AHEAD_MS = 60_000
"""Time in ms that the newest record may be in the future, because clocks differ."""


def visible(text: str | None, limit: int = LONGEST) -> str:
    """Return the text on one line of at most `limit` characters, with control and direction characters made visible."""
    if text is None:
        return ABSENT
    if text == "":
        return "(empty)"
    return shorten(visible_text(text[: 2 * LONGEST]), limit)


def shorten(text: str, limit: int) -> str:
    """Return the head and tail around an ellipsis, because ids often differ only in their last characters."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[len(text) - tail :]}"


def figure_text(text: str | None, limit: int = 80) -> str:
    """Return `visible` text with Plotly's markup escaped: no element, link or formula."""
    return visible(text, limit).translate(ENTITIES)


def member_label(member_id: str, group_instance_id: str | None = None, client_id: str | None = None) -> str:
    """Return a short name: the instance id of a static member, else the client id and the first digits of the UUID."""
    if group_instance_id:
        return group_instance_id
    if client_id and member_id.startswith(f"{client_id}-"):
        return f"{client_id}·{member_id[len(client_id) + 1 :][:4]}"
    if client_id:  # member ids of KIP-848 clients do not contain the client id
        return f"{client_id}·{member_id[:4]}"
    # Kafka builds a member id from the client id, a hyphen and a UUID (36 characters).
    head, tail = member_id[:-37], member_id[-36:]
    return f"{head}·{tail[:4]}" if head and member_id[-37] == "-" else member_id


def host(name: str | None, limit: int = 80) -> str:
    """Return a host without the slash that Java prints before an address."""
    return visible(name.removeprefix("/") if name else name, limit)


def resource(name: str, index: int, limit: int = LONGEST) -> str:
    """Return `orders-3`, or only the name for a connector, which has no number (index -1)."""
    number = "" if index < 0 else f"-{index}"
    return f"{visible(name, limit - len(number))}{number}"


def duration(ms: float | None) -> str:
    """Return `12.4 s`, `3 min 12 s` or `2 h 5 min` (`schemas.written`); a dash if the duration is unknown."""
    return ABSENT if ms is None else written.duration(ms)


def is_ahead(until: int, now: int) -> bool:
    """Return whether the newest record is from the future, so that its age is not known; both in milliseconds."""
    return until - now > AHEAD_MS


def future(ms: float) -> str:
    """Return that a newest record is `ms` in the future, as the end of a sentence."""
    return f"{duration(ms)} in the future: a clock is wrong, so its age is not known"


def amount(value: float | None) -> str:
    """Return a number of resource-seconds (`schemas.written`); a dash if it is unknown."""
    return ABSENT if value is None else written.amount(value)


def bounded(value: float | None, low: float | None, high: float | None, label: str = "") -> str:
    """Return an estimate with its limits (`schemas.written`); a dash if any of the three is unknown."""
    if value is None or low is None or high is None:
        return ABSENT
    return written.bounded(value, low, high, label)


def span(first: str, last: str) -> str:
    """Return `first` and `last` around an en dash (`schemas.written`), or one of them if they are equal."""
    return written.span(first, last)


def between(low: float | None, high: float | None) -> str:
    """Return a duration known only by its limits: both around an en dash, or one number if they are equal."""
    if low is None or high is None:
        return ABSENT
    return span(duration(low), duration(high))


def instant(ms: int | None) -> str:
    """Return `2026-11-21 12:03:07.123`, in the page's zone."""
    if ms is None:
        return ABSENT
    return local(ms).isoformat(" ", "milliseconds")[:23]


def clock(ms: int | None) -> str:
    """Return `12:03:07`, in the page's zone."""
    return ABSENT if ms is None else local(ms).strftime("%H:%M:%S")


def zoned(head: str) -> str:
    """Return a heading with `(UTC)` replaced by the page's zone."""
    return head.replace("(UTC)", f"({zone()})")
