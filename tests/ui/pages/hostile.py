"""More than five hundred hostile names, none of which may do harm on a page."""

from __future__ import annotations

import html
from collections.abc import Callable
from urllib.parse import quote

from tests.ui.browser.test_browser import HOSTILE

MADE: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    html.escape,
    quote,
    lambda text: f'x" y={text}',
    lambda text: f"</td></svg>{text}",
    lambda text: f"\u202e{text}\u200b",
    lambda text: f"%{{{text}}}<extra>{text}</extra>",
    lambda text: f"${text}$",
    lambda text: f"[{text}](//evil.example){text}",
    lambda text: f"{text}\n{text}\x00",
)

STRINGS = tuple(dict.fromkeys(make(text) for make in MADE for text in HOSTILE))
