"""Documents of headings, paragraphs and tables of plain text, and how they are written as Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$&])")
"""Characters that begin something in Markdown, or in HTML inside it."""

STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "th,td{border-bottom:1px solid #8884;padding:.3rem .8rem;text-align:left;vertical-align:top}"
)


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class TextTable:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


Block = Heading | Paragraph | TextTable


def markdown(blocks: Iterable[Block]) -> str:
    """Return the document as Markdown with tables. All text is escaped."""
    return "\n".join(_markdown(block) for block in blocks)


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {_escaped(text)}\n"
        case Paragraph(text):
            return f"{_escaped(text)}\n"
        case TextTable(head, rows):
            lines = [f"| {' | '.join(map(_escaped, cells))} |" for cells in (head, *rows)]
            return "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]]) + "\n"


def _escaped(text: str) -> str:
    # A line break would end a table's row.
    return SPECIAL.sub(r"\\\1", " ".join(text.splitlines()))


def html(blocks: Iterable[Block], title: str) -> str:
    """Return the document as one HTML page that needs no other file and runs no script. All text is escaped."""
    head = (
        '<meta charset="utf-8">',
        f"<title>{escape(title)}</title>",
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">""",
        '<meta name="viewport" content="width=device-width">',
        f"<style>{STYLE}</style>",
    )
    lines = ["<!doctype html>", '<html lang="en"><head>', *head, "</head><body>", *map(_html, blocks), "</body></html>"]
    return "\n".join(lines) + "\n"


def _html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case TextTable(head, rows):
            top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
            body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n" for cells in rows)
            return f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table>"
