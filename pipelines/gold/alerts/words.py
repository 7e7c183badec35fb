"""Wording of evidence, causes and verdicts in alerts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.gold.alerts.escaping import without_links
from schemas.states import DiagnosisCause, Evidence, Verdict

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


def verdict(name: str | None, evidence: str, why: str = "") -> str:
    """Return `Verdict: client application (inferred), why.`; `name` is None if there is no verdict."""
    if name is None or name == Verdict.UNKNOWN:
        return "Verdict: not known."
    return f"Verdict: {name.replace('_', ' ')} ({evidence}){why and f', {why}'}."


def diagnosed_verdict(diagnosis: Mapping[str, Any] | None) -> str:
    """Return a sentence on the verdict of the rebalances with the suspected cause (None: no diagnosis)."""
    return verdict(diagnosis.get("verdict"), diagnosis["evidence"]) if diagnosis is not None else verdict(None, "")
