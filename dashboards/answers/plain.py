"""Documents as plain text for mail: aligned tables, nothing escaped. Their texts are `visible` already."""

from __future__ import annotations

from collections.abc import Iterable

from dashboards.answers.blocks import Block, Code, Drawing, Heading, Items, Links, Pairs, Paragraph, TextTable
from dashboards.answers.written import WIDTH, columns, wrapped


def plain_text(blocks: Iterable[Block]) -> str:
    """Return the document as lines of plain text."""
    return "\n\n".join(_plain(block) for block in blocks) + "\n"


def _plain(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f"{text}\n{('=' if level == 1 else '-') * min(len(text), WIDTH)}"
        case Paragraph(text) | Drawing(_, text):
            return wrapped(text)
        case Items(texts):
            return "\n".join(wrapped(text, "- ", "  ") for text in texts)
        case Pairs(pairs) | Links(pairs):
            return "\n".join(f"{name}: {text}" for name, text in pairs)
        case Code(text):
            return text
        case TextTable(head, rows):
            return "\n".join(columns([head, *rows], WIDTH))
