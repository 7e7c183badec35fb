"""Foreign text made harmless for whoever receives an alert: chats, mail, terminals, tickets.

Group, client and topic names are strangers' text. A chat would call everybody for `<!channel>`, follow a Markdown link,
a terminal obey an escape sequence.
"""

from __future__ import annotations

import unicodedata
from hashlib import sha256

MARKUP = frozenset("<>[]`@")
"""Mentions and links of Slack (`<!channel>`, `<@U1>`, `<url|text>`), Markdown's links and code, `@here`, HTML."""

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
LINK = "://"
LONGEST = 512


def escaped(name: str) -> str:
    """The name with markup, control and direction characters and `%` percent-encoded, which can be undone.

    One that is longer than `LONGEST` characters goes by its beginning and a hash, and does not come back.
    """
    if len(name) > LONGEST:
        name = f"{name[:64]}...{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return _encoded(name, MARKUP | {"%"})


def without_links(sentence: str) -> str:
    """A sentence that may hold foreign names: the same characters encoded, `%` left as it is."""
    return _encoded(sentence, MARKUP)


def _encoded(text: str, markup: frozenset[str]) -> str:
    whole = "".join(_percent(c) if c in markup or unicodedata.category(c) in HIDDEN else c for c in text)
    # Chats make a link of any address.
    return whole.replace(LINK, ":%2F%2F")


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
