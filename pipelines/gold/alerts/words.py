"""Instants, numbers and causes as alerts word them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pipelines.gold.alerts.escaping import without_links
from schemas.states import DiagnosisCause, Evidence

GRADES = (Evidence.OBSERVED, Evidence.BOUNDED, Evidence.INFERRED)
"""Best first."""


def instant(ms: int) -> str:
    """`2026-11-21 12:03:07 UTC`."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def worst(grades: Iterable[str]) -> Evidence:
    """The weakest of the grades; inferred where there is none."""
    return max((Evidence(grade) for grade in grades), key=GRADES.index, default=Evidence.INFERRED)


def suspected(diagnosis: Mapping[str, Any] | None) -> str:
    """What stands behind a group's rebalances, as far as a diagnosis tells."""
    if diagnosis is None or diagnosis["cause"] == DiagnosisCause.UNKNOWN:
        return "Suspected cause: not known."
    told = without_links(diagnosis["explanation"] or "")
    return f"Suspected cause: {diagnosis['cause']} ({diagnosis['evidence']}). {told}".strip()
