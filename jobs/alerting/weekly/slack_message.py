"""The weekly report as a message of Slack's incoming webhooks: blocks, and a text where blocks are not shown.

Slack allows 50 blocks, and 3,000 characters in the text of a block. All texts are `plain_text`, in which Slack looks
for no mention, link or format; the same characters are escaped as in alerts, for chats that take the same messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dashboards.answers.blocks import Block, Heading, Paragraph, TextTable
from pipelines.gold.alerts.escaping import without_links

MOST_BLOCKS = 50
LONGEST_TEXT = 3_000
LONGEST_HEADER = 150
LONGEST_LINE = 600
ROWS = 10
"""Rows of a table in a message. The page and the mail have more."""

ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
Message = dict[str, Any]


def slack_message(blocks: Iterable[Block], link: str, fallback: str) -> Message:
    """Return the message. `link` is the page of the week, `fallback` the text for notifications."""
    found = list(_blocks(blocks))[: MOST_BLOCKS - 1]
    return {
        "text": _escaped(fallback)[:LONGEST_TEXT],
        "mrkdwn": False,
        "parse": "none",
        "link_names": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": [*found, _link(link)],
    }


def _blocks(blocks: Iterable[Block]) -> Iterator[Message]:
    for block in blocks:
        match block:
            case Heading(_, text):
                yield {"type": "header", "text": _plain(_escaped(text)[:LONGEST_HEADER])}
            case Paragraph(text):
                yield from _sections([_escaped(text)])
            case TextTable(head, rows):
                yield from _sections([*_lines(head, rows[:ROWS]), *_left_out(rows)])


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for first, *rest in rows:
        named = ", ".join(f"{name.lower()} {cell}" for name, cell in zip(head[1:], rest, strict=True))
        yield _escaped(f"\N{BULLET} {first}: {named}")


def _left_out(rows: Sequence[object]) -> list[str]:
    return [f"and {len(rows) - ROWS:,} more on the page"] if len(rows) > ROWS else [] if rows else ["None."]


def _sections(lines: Iterable[str]) -> Iterator[Message]:
    """Yield as few sections as possible for these lines, none of which is divided."""
    text = ""
    for line in (each[:LONGEST_LINE] for each in lines):
        if text and len(text) + 1 + len(line) > LONGEST_TEXT:
            yield {"type": "section", "text": _plain(text)}
            text = ""
        text = f"{text}\n{line}" if text else line
    if text:
        yield {"type": "section", "text": _plain(text)}


def _plain(text: str) -> Message:
    return {"type": "plain_text", "text": text, "emoji": False}


def _link(address: str) -> Message:
    text = f"<{address.translate(ENTITIES)}|The week by cause>"
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def _escaped(text: str) -> str:
    return without_links(text).translate(ENTITIES)
