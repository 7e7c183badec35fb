"""Escaping of untrusted text in alerts, for receivers such as chats, mail, terminals and tickets.

Group, client and topic names are untrusted. A chat would notify everybody for `<!channel>` or show a Markdown link, and
a terminal would execute an escape sequence.
"""

from __future__ import annotations

import unicodedata
from hashlib import sha256

MARKUP = frozenset("<>[]`@")
"""Characters of Slack's mentions and links (`<!channel>`, `<@U1>`, `<url|text>`), Markdown's links and code, `@here`
and HTML."""

CALLS = ("all", "channel", "everyone", "here")
"""What some chats take as a call to everybody after an `@`, even within a word."""

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
LINK = "://"
LONGEST = 512


def escaped(name: str) -> str:
    """Return the name with markup, control and text direction characters and `%` percent-encoded; this is reversible.

    A name longer than `LONGEST` characters becomes its beginning and a hash, which is not reversible.
    """
    if len(name) > LONGEST:
        name = f"{name[:64]}...{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return _encoded(name, MARKUP | {"%"})


def without_links(sentence: str) -> str:
    """Return a sentence that may contain untrusted names, with the same characters encoded except `%`."""
    return _encoded(sentence, MARKUP)


def _encoded(text: str, markup: frozenset[str]) -> str:
    whole = "".join(
        _percent(c) if (c in markup and not _is_within_word(text, at)) or unicodedata.category(c) in HIDDEN else c
        for at, c in enumerate(text)
    )
    # Chats turn any URL into a link.
    return whole.replace(LINK, ":%2F%2F")


def _is_within_word(text: str, at: int) -> bool:
    """Return whether the character is the `@` of a name like `app1@host`, which no chat takes as a mention."""
    is_joined = text[at] == "@" and at > 0 and (text[at - 1] == "_" or text[at - 1].isalnum())
    return is_joined and not text[at + 1 :].lower().startswith(CALLS)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
