"""One span, with ids that are hashes of what the span is about: the same row always gives the same ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

LONGEST = 512
NANOSECONDS = 1_000_000
"""Nanoseconds in a millisecond, the unit of the tables."""

Value = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpan:
    """A span of OpenTelemetry. Times are in nanoseconds since 1970; `links` are pairs of a trace id and a span id."""

    name: str
    trace_id: int
    span_id: int
    start_ns: int
    end_ns: int
    parent_id: int | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)
    links: tuple[tuple[int, int], ...] = ()


def trace_id(*parts: object) -> int:
    """Return 128 bits of a hash of the parts, which are never all zero."""
    return _hash("trace", parts, 16)


def span_id(*parts: object) -> int:
    """Return 64 bits of a hash of the parts, which are never all zero."""
    return _hash("span", parts, 8)


def nanoseconds(milliseconds: int) -> int:
    """Return nanoseconds since 1970; a time before 1970, which OTLP cannot express, becomes 0."""
    return max(0, milliseconds) * NANOSECONDS


def attributes(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return the values that are known. Text is cut after `LONGEST` characters, and made valid UTF-8."""
    return {
        name: _text(value) if isinstance(value, str) else value for name, value in values.items() if value is not None
    }


def _text(value: str) -> str:
    return value[:LONGEST].encode("utf-8", "replace").decode()


def _hash(kind: str, parts: tuple[object, ...], size: int) -> int:
    # Lengths, because names may contain every separator.
    text = "".join(f"{len(part)}:{part}" for part in (kind, *map(str, parts)))
    found = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(found[:size]) or 1
