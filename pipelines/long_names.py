"""Names in decoded records cut to a limit: Kafka takes client ids, reasons and topics of up to 32,767 bytes."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

DIGITS = 16
"""Hexadecimal digits of the hash that tells two cut names apart."""


def parsed(text: str, most: int) -> Any:
    """The JSON value that `text` holds, with every string of more than `most` bytes (UTF-8) `shortened`."""
    value = json.loads(text)
    # Looking for long strings here costs a tenth of walking the value, which few records need.
    may_be_long = len(text) > most and ("\\" in text or max(map(len, text.split('"'))) > most)
    return cut(value, most) if may_be_long else value


def shortened(name: str, most: int) -> str:
    """The beginning of the name, an ellipsis and a hash of the whole name, in at most `most` bytes if `most` is 32 or
    more. Two names share the result only if their hashes are the same.
    """
    raw = name.encode(errors="surrogatepass")
    if len(raw) <= most:
        return name
    mark = f"…{sha256(raw).hexdigest()[:DIGITS]}"
    return raw[: max(0, most - len(mark.encode()))].decode(errors="ignore") + mark


def cut(part: Any, most: int) -> Any:
    """The value with every string of more than `most` bytes `shortened`, names of fields included."""
    if isinstance(part, str):
        # A character has at most four bytes.
        return part if len(part) * 4 <= most else shortened(part, most)
    if isinstance(part, list):
        return part if part and isinstance(part[0], int) else [cut(each, most) for each in part]
    if isinstance(part, dict):
        return {cut(name, most): cut(value, most) for name, value in part.items()}
    return part
