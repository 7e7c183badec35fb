"""Values and attributes of OTLP/JSON as plain values."""

from __future__ import annotations

from typing import Any

NANOS = 1_000_000
"""Nanoseconds in a millisecond."""


def plain(value: Any) -> Any:
    """Return the plain value of an OTLP `AnyValue`; None for an unknown form."""
    found: Any = None
    match value:
        case {"kvlistValue": dict(inner)}:
            found = attributes(inner.get("values"))
        case {"arrayValue": dict(inner)}:
            found = [plain(each) for each in listed(inner, "values")]
        case {"intValue": str(digits)} if digits.removeprefix("-").isdecimal() and len(digits) < 20:
            found = int(digits)  # OTLP/JSON writes 64-bit integers as text
        case {"stringValue": str(found)} | {"boolValue": bool(found)} | {"intValue": int(found)}:
            pass
        case {"doubleValue": float(found)}:
            pass
    return found


def attributes(entries: Any) -> dict[str, Any]:
    """Return a list of keys with values as a dict. Other entries are left out."""
    found = entries if isinstance(entries, list) else []
    return {
        each["key"]: plain(each.get("value"))
        for each in found
        if isinstance(each, dict) and isinstance(each.get("key"), str)
    }


def listed(content: Any, name: str) -> list[Any]:
    """Return the list in a field of an object; an empty list if there is none."""
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, list) else []


def milliseconds(nanos: Any) -> int | None:
    """Return a time in nanoseconds, which OTLP/JSON writes as text, in milliseconds; None for 0 or no such time."""
    text = str(nanos)
    ms = int(text) // NANOS if text.isascii() and text.isdigit() and len(text) < 20 else 0
    return ms or None
