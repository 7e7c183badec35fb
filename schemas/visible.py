"""Display of untrusted text: characters that hide or reorder text are replaced with a visible sign."""

from __future__ import annotations

import unicodedata
from typing import Any, TextIO, cast

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of control, format (text direction, zero width), surrogate and line separator characters."""


def visible_text(text: str, keep: str = "") -> str:
    """Return the text with a visible sign for each hidden character, except for those in `keep`."""
    if text.isprintable():  # a printable text contains no hidden character
        return text
    return "".join(c if c in keep else _sign(c) for c in text)


def _sign(character: str) -> str:
    if unicodedata.category(character) not in HIDDEN:
        return character
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:X}⟩"


class VisibleStream:
    """A text stream that writes a visible sign for each hidden character, to protect terminals and log files.

    Line ends and tabs are written unchanged. A character that the stream cannot encode is written as its escape
    sequence.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        shown = visible_text(text, keep="\n\t")
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def visible_stream(stream: TextIO) -> TextIO:
    """Return the stream as a `VisibleStream`; a stream that already is one is returned unchanged."""
    return stream if isinstance(stream, VisibleStream) else cast("TextIO", VisibleStream(stream))
