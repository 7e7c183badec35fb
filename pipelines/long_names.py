"""Truncation of long names in decoded records. Kafka accepts client ids, reasons and topics of up to 32,767 bytes."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

DIGITS = 16
"""Count of hexadecimal digits of the hash that distinguishes two truncated names."""


def parsed(text: str, most: int) -> Any:
    """Return the JSON value of `text`, with every string of more than `most` UTF-8 bytes `shortened`."""
    value = json.loads(text)
    # This check takes a fiftieth of the time of a traversal, which few records need.
    may_be_long = len(text) > most and ("\\" in text or _has_long_string(text, most))
    return cut(value, most) if may_be_long else value


def _has_long_string(text: str, most: int) -> bool:
    """Return whether more than `most` characters follow each other without a quote."""
    # Such characters contain all of a part of half the length. Looking for one takes a fifth of the time of a split.
    half = max(1, most // 2)
    has_part = any(text.find('"', at, at + half) < 0 for at in range(0, len(text), half))
    return has_part and max(map(len, text.split('"'))) > most


def shortened(name: str, most: int) -> str:
    """Return the beginning of the name, an ellipsis and a hash of the whole name.

    The result has at most `most` bytes if `most` is 32 or more. Two truncated names have the same result only if their
    hashes are equal.
    """
    raw = name.encode(errors="surrogatepass")
    if len(raw) <= most:
        return name
    mark = f"…{sha256(raw).hexdigest()[:DIGITS]}"
    return raw[: max(0, most - len(mark.encode()))].decode(errors="ignore") + mark


def cut(part: Any, most: int) -> Any:
    """Return the value with every string of more than `most` bytes `shortened`, including field names."""
    if isinstance(part, str):
        # A character takes at most four bytes.
        return part if len(part) * 4 <= most else shortened(part, most)
    if isinstance(part, list):
        return part if part and isinstance(part[0], int) else [cut(each, most) for each in part]
    if isinstance(part, dict):
        return {cut(name, most): cut(value, most) for name, value in part.items()}
    return part
