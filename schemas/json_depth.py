"""How deeply JSON from outside may be nested: Python reads deeper text than it can write again or walk by recursion."""

from __future__ import annotations

from typing import Any

DEEPEST_JSON = 32
"""Levels of lists and objects. OTLP, the deepest format that is known, has less than twelve; Kafka's answers five."""

DEEPEST_REQUEST = 24
"""The same for a request to the pages, which only they make."""


def is_too_deep(value: Any, most: int = DEEPEST_JSON) -> bool:
    """Return whether a value that JSON gave has more than `most` levels; level by level, without recursion."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(each, dict | list) for each in level)
