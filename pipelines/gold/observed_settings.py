"""Settings of brokers and topics as polls observed them. A message on the events topic may give them any value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def whole_number(observed: Mapping[str, Any], name: str) -> int | None:
    """Return the value of a setting, from 0 to Kafka's largest INT; None if it is missing or invalid."""
    try:
        found = int(observed[name])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return found if 0 <= found < 2**31 else None
