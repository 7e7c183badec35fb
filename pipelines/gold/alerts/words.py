"""Wording of evidence and causes in alerts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.gold.alerts.escaping import without_links
from schemas.states import DiagnosisCause, Evidence

GRADES = (Evidence.OBSERVED, Evidence.BOUNDED, Evidence.INFERRED)
"""Kinds of evidence, best first."""


def worst(grades: Iterable[str]) -> Evidence:
    """Return the weakest of the kinds of evidence; inferred if there is none."""
    return max((Evidence(grade) for grade in grades), key=GRADES.index, default=Evidence.INFERRED)


def suspected(diagnosis: Mapping[str, Any] | None) -> str:
    """Return a sentence on the suspected cause of a group's rebalances, from its diagnosis (None: no diagnosis)."""
    if diagnosis is None or diagnosis["cause"] == DiagnosisCause.UNKNOWN:
        return "Suspected cause: not known."
    why = without_links(diagnosis["explanation"] or "")
    return f"Suspected cause: {diagnosis['cause']} ({diagnosis['evidence']}). {why}".strip()
