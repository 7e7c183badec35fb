"""Foreign text and numbers, ready to be shown.

Group, member, client and host names are strangers' text. React escapes what HTML elements show; Plotly reads a subset
of HTML and, in `$…$`, MathJax out of every string it draws, so whatever goes into a figure passes `figure_text`.
"""

from __future__ import annotations

from dashboards.zone import local, zone
from schemas import written
from schemas.visible import visible_text

ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})
LONGEST = 512
ABSENT = written.EN_DASH


def visible(text: str | None, limit: int = LONGEST) -> str:
    """The text on one line, at most `limit` characters, with every control and direction character made visible."""
    if text is None:
        return ABSENT
    if text == "":
        return "(empty)"
    return shorten(visible_text(text[: 2 * LONGEST]), limit)


def shorten(text: str, limit: int) -> str:
    """Head and tail around an ellipsis: ids often differ in their last characters only."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[len(text) - tail :]}"


def figure_text(text: str | None, limit: int = 80) -> str:
    """`visible` text that Plotly draws literally: no element, no link, no formula."""
    return visible(text, limit).translate(ENTITIES)


def member_label(member_id: str, group_instance_id: str | None = None, client_id: str | None = None) -> str:
    """A short name: the instance of a static member, else the client id with the first digits of Kafka's UUID."""
    if group_instance_id:
        return group_instance_id
    if client_id and member_id.startswith(f"{client_id}-"):
        return f"{client_id}·{member_id[len(client_id) + 1 :][:4]}"
    if client_id:  # clients of KIP-848 make ids that do not tell whose they are
        return f"{client_id}·{member_id[:4]}"
    # Kafka makes a member id of the client id, a hyphen and a UUID (36 characters).
    head, tail = member_id[:-37], member_id[-36:]
    return f"{head}·{tail[:4]}" if head and member_id[-37] == "-" else member_id


def resource(name: str, index: int, limit: int = LONGEST) -> str:
    """`orders-3`; a connector itself, which has no number (index -1), by its name."""
    number = "" if index < 0 else f"-{index}"
    return f"{visible(name, limit - len(number))}{number}"


def duration(ms: float | None) -> str:
    """`12.4 s`, `3 min 12 s`, `2 h 5 min` (`schemas.written`); a dash if it is not known."""
    return ABSENT if ms is None else written.duration(ms)


def amount(value: float | None) -> str:
    """A number of resource-seconds (`schemas.written`); a dash if it is not known."""
    return ABSENT if value is None else written.amount(value)


def bounded(value: float | None, low: float | None, high: float | None) -> str:
    """An estimate with its limits (`schemas.written`); a dash if any of them is not known."""
    if value is None or low is None or high is None:
        return ABSENT
    return written.bounded(value, low, high)


def span(first: str, last: str) -> str:
    """`first` to `last` around an en dash; one of them where they agree."""
    return first if first == last else f"{first} {ABSENT} {last}"


def between(low: float | None, high: float | None) -> str:
    """A duration of which only limits are known: `9 s` to `24 s`; one number where they agree."""
    if low is None or high is None:
        return ABSENT
    return span(duration(low), duration(high))


def instant(ms: int | None) -> str:
    """`2026-11-21 12:03:07.123`, in the page's zone."""
    if ms is None:
        return ABSENT
    return local(ms).isoformat(" ", "milliseconds")[:23]


def clock(ms: int | None) -> str:
    """`12:03:07`, in the page's zone."""
    return ABSENT if ms is None else local(ms).strftime("%H:%M:%S")


def zoned(head: str) -> str:
    """A head that says `(UTC)`, with the page's zone in its place."""
    return head.replace("(UTC)", f"({zone()})")
