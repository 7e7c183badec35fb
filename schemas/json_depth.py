"""Limit for the nesting of untrusted JSON: Python parses deeper JSON than it can serialize or walk recursively."""

from __future__ import annotations

from typing import Any

DEEPEST_JSON = 32
"""Levels of lists and objects. OTLP, the deepest known format, has less than twelve levels; Kafka's responses have
five."""

DEEPEST_REQUEST = 24
"""Levels in a request to the pages. Only the pages themselves send such requests."""


def is_too_deep(value: Any, most: int = DEEPEST_JSON) -> bool:
    """Return whether a parsed JSON value has more than `most` levels. The check is iterative, not recursive."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(each, dict | list) for each in level)
