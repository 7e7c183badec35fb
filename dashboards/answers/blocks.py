"""Documents of headings, paragraphs, lists, tables and drawings, and how they are written as Markdown and HTML.

All text is plain text and is escaped. Only a drawing is markup, which the product makes itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$&@]|:(?=//))")
"""Characters that begin markup in Markdown, in HTML inside it, or in an address that becomes a link by itself."""

BEGINS = re.compile(r"^([+\-=]|[0-9]+(?=[.)]))")
"""What makes a line of Markdown a list item or a heading's underline."""

WWW = re.compile(r"\bwww(?=\.)", re.IGNORECASE)
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
ADDRESS = re.compile(r"https?://[^\s<>\"'\\]+")

STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}"
    "h1{line-height:1.25}h2{margin:2rem 0 .5rem}h3{margin:1.2rem 0 .3rem}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "th,td{border-bottom:1px solid #8884;padding:.3rem .8rem;text-align:left;vertical-align:top;overflow-wrap:normal}"
    "td:last-child{overflow-wrap:anywhere;min-width:8rem}"
    "dl{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.25rem 1.2rem}"
    "dt{opacity:.75}dd{margin:0}"
    "pre{overflow-x:auto;padding:.6rem .8rem;border:1px solid #8884;border-radius:4px;font-size:13px}"
    "figure{margin:1rem 0;overflow-x:auto}svg{display:block;width:100%;min-width:44rem;height:auto}"
    "@media(max-width:40rem){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.4rem}}"
    "@page{size:A4;margin:14mm}"
    "@media print{:root{color-scheme:light}"
    "body{background:#fff;color:#000;font-size:9.5pt;max-width:none;margin:0;padding:0}a{color:#000}"
    "h1,h2,h3{break-after:avoid}tr,figure,dl>*{break-inside:avoid}p,li{orphans:3;widows:3}"
    "table{display:table;width:100%}thead{display:table-header-group}"
    "th,td{padding:.15rem .35rem;font-size:8pt}td,td:last-child{overflow-wrap:anywhere;min-width:4rem}"
    "pre{white-space:pre-wrap;border-color:#888;background:none}svg{min-width:0}figure{overflow:visible}}"
)
"""Colours of the browser's theme on screens. On paper: black on white, no row or figure across two pages, and the head
of a table on each of its pages.
"""


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list of short texts."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names with their values."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to copy, line by line."""

    text: str


@dataclass(frozen=True, slots=True)
class Links:
    """Names with addresses: http or https, or the name of a file beside the document (`is_file`)."""

    pairs: Sequence[tuple[str, str]]
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG of our own, with the sentence that describes it. Markdown has the sentence only."""

    svg: str
    text: str


@dataclass(frozen=True, slots=True)
class TextTable:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


Block = Heading | Paragraph | Items | Pairs | Code | Links | Drawing | TextTable


def markdown(blocks: Iterable[Block]) -> str:
    """Return the document as Markdown with tables. All text is escaped."""
    return "\n".join(_markdown(block) for block in blocks)


def _markdown(block: Block) -> str:
    match block:
        case Heading(level, text):
            out = f"{'#' * level} {_escaped(text)}\n"
        case Paragraph(text) | Drawing(_, text):
            out = f"{_line(text)}\n"
        case Items(texts):
            out = "".join(f"- {_line(text)}\n" for text in texts)
        case Pairs(pairs):
            out = "".join(f"- {_line(name)}: {_escaped(text)}\n" for name, text in pairs)
        case Links(pairs):
            out = "".join(f"- {_line(name)}: {_markdown_link(address, block)}\n" for name, address in pairs)
        case Code(text):
            # Longer than any run of backticks in the text, so that the text cannot end it.
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            out = f"{fence}\n{text}\n{fence}\n"
        case TextTable(head, rows):
            lines = [f"| {' | '.join(map(_escaped, cells))} |" for cells in (head, *rows)]
            out = "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]]) + "\n"
    return out


def _escaped(text: str) -> str:
    # A line break would end a table's row.
    line = SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return WWW.sub(lambda found: f"{found[0]}\\", line)


def _line(text: str) -> str:
    """Return escaped text with which a line begins."""
    return BEGINS.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", _escaped(text))


def _is_safe(address: str, links: Links) -> bool:
    """Return whether the address leads where its text says: to http(s), or to a plain file beside the document."""
    return bool(FILE.fullmatch(address) if links.is_file else ADDRESS.fullmatch(address))


def _markdown_link(address: str, links: Links) -> str:
    if not _is_safe(address, links):
        return _escaped(address)
    return f"[{_escaped(address)}](<{address}>)" if links.is_file else f"<{address}>"


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
            out = f"<h{level}>{escape(text)}</h{level}>"
        case Paragraph(text):
            out = f"<p>{escape(text)}</p>"
        case Drawing(svg, text):
            out = f"<figure>{svg}</figure><p>{escape(text)}</p>"
        case Items(texts):
            out = f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
        case Pairs(pairs):
            out = f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(text)}</dd>' for name, text in pairs)}</dl>"
        case Links(pairs):
            out = f"<ul>{''.join(f'<li>{escape(name)}: {_anchor(each, block)}</li>' for name, each in pairs)}</ul>"
        case Code(text):
            out = f"<pre><code>{escape(text)}</code></pre>"
        case TextTable(head, rows):
            top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
            body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>\n" for cells in rows)
            out = f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}</tbody></table>"
    return out


def _anchor(address: str, links: Links) -> str:
    text = escape(address)
    return f'<a href="{text}" rel="noreferrer">{text}</a>' if _is_safe(address, links) else text
