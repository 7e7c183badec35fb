"""Rows of `diagnoses`: the causes of a group's rebalances in one window; each completed rebalance has one cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipelines.gold.churn import known_instants
from pipelines.gold.diagnosis.cases import Case, longest_run
from pipelines.gold.diagnosis.causes import Context
from pipelines.gold.diagnosis.explanations import explanation
from pipelines.gold.diagnosis.verdicts import Judged, Judgment, heaviest, judgment
from pipelines.gold.memberships import Silver, number
from schemas.rows import DiagnosisOfGroup, MarkRow
from schemas.states import NORMAL_CAUSES, DiagnosisCause, Evidence
from schemas.thresholds import CONVERGED


def diagnosis_rows(
    silver: Silver, start_ms: int, marks: Sequence[MarkRow] = (), known: Context | None = None
) -> list[DiagnosisOfGroup]:
    """Return a row for each cause, the most expensive first; their `share` adds up to 1.

    The list is empty if no rebalance completed. `silver` is one window of one group, as `window` returns it.
    Generations that joined before `start_ms` only show which members were present. `marks` are rows of that table, of
    the group or its whole cluster. `known` is the context of `silver`, if it was made already. Timestamps are in
    milliseconds.
    """
    rows = [g for g in sorted(silver["generations"], key=number) if g["joined_at"] >= start_ms]
    judged = judgment(silver, start_ms, marks, known)
    if not judged.rebalances:
        return []
    cases: dict[DiagnosisCause, list[Judged]] = defaultdict(list)
    for rebalance in judged.rebalances:
        cases[rebalance.found.cause].append(rebalance)
    as_of = max(known_instants(silver, rows))
    window_start_at = max(start_ms, min(g["joined_at"] for g in silver["generations"]))
    costs = {cause: sum(j.loss.best for j in mine) / 1000 for cause, mine in cases.items()}
    ranked = sorted(cases, key=lambda cause: (-costs[cause], -len(cases[cause]), cause.value))
    out: list[DiagnosisOfGroup] = []
    for rank, cause in enumerate(ranked, 1):
        case = _case(cause, cases[cause], judged, marks)
        named = Counter(case.names)
        out.append(
            {
                "as_of": as_of,
                "cause": cause.value,
                "rank": rank,
                "rebalances": len(case.rows),
                "share": len(case.rows) / len(judged.rebalances),
                "lost_resource_seconds": costs[cause],
                "is_normal": cause in NORMAL_CAUSES and _converges(case),
                "first_at": case.rows[0]["joined_at"],
                "last_at": case.rows[-1]["joined_at"],
                "instances": sorted(named, key=lambda name: (-named[name], name)),
                "evidence": _evidence(case).value,
                "explanation": explanation(case),
                "window_start_at": window_start_at,
                "verdict": heaviest(cases[cause]).value,
            }
        )
    return out


def _case(cause: DiagnosisCause, mine: Sequence[Judged], judged: Judgment, marks: Sequence[MarkRow]) -> Case:
    return Case(
        cause=cause,
        rows=[j.row for j in mine],
        found=[j.found for j in mine],
        known=judged.known,
        numbers=[part for j in mine for part in judged.parts[number(j.row)]],
        marks=marks,
    )


def _converges(case: Case) -> bool:
    return case.cause != DiagnosisCause.FOLLOW_UPS or longest_run(case) <= CONVERGED


def _evidence(case: Case) -> Evidence:
    is_observed = all(found.evidence == Evidence.OBSERVED for found in case.found)
    is_observed |= case.cause == DiagnosisCause.DEPLOY and case.is_announced
    return Evidence.OBSERVED if is_observed else Evidence.INFERRED
