"""Rows of `diagnoses`: the causes of a group's rebalances in one window; each completed rebalance has one cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipelines.gold.churn import known_instants, lost_ms
from pipelines.gold.diagnosis.cases import Case, longest_run
from pipelines.gold.diagnosis.causes import Context, Found, cause_of, context
from pipelines.gold.diagnosis.explanations import explanation
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import Silver, number
from schemas.rows import DiagnosisOfGroup, GenerationRow, MarkRow
from schemas.states import NORMAL_CAUSES, DiagnosisCause, Evidence, StallCause
from schemas.thresholds import CONVERGED


def diagnosis_rows(silver: Silver, start_ms: int, marks: Sequence[MarkRow] = ()) -> list[DiagnosisOfGroup]:
    """Return a row for each cause, the most expensive first; their `share` adds up to 1.

    The list is empty if no rebalance completed. `silver` is one window of one group, as `window` returns it.
    Generations that joined before `start_ms` only show which members were present. `marks` are rows of that table, of
    the group or its whole cluster. Timestamps are in milliseconds.
    """
    rows = [g for g in sorted(silver["generations"], key=number) if g["joined_at"] >= start_ms]
    completed = [g for g in rows if g["completed_at"] is not None]
    if not completed:
        return []
    known = context(silver)
    parts = overtaken(rows)
    lost = _lost(silver, rows, parts)
    cases: dict[DiagnosisCause, list[tuple[GenerationRow, Found]]] = defaultdict(list)
    for g in completed:
        found = cause_of(g, known)
        cases[found.cause].append((g, found))
    as_of = max(known_instants(silver, rows))
    window_start_at = max(start_ms, min(g["joined_at"] for g in silver["generations"]))
    costs = {cause: sum(lost[number(g)] for g, _ in mine) / 1000 for cause, mine in cases.items()}
    ranked = sorted(cases, key=lambda cause: (-costs[cause], -len(cases[cause]), cause.value))
    out: list[DiagnosisOfGroup] = []
    for rank, cause in enumerate(ranked, 1):
        case = _case(cause, cases[cause], known, parts, marks)
        named = Counter(case.names)
        out.append(
            {
                "as_of": as_of,
                "cause": cause.value,
                "rank": rank,
                "rebalances": len(case.rows),
                "share": len(case.rows) / len(completed),
                "lost_resource_seconds": costs[cause],
                "is_normal": cause in NORMAL_CAUSES and _converges(case),
                "first_at": case.rows[0]["joined_at"],
                "last_at": case.rows[-1]["joined_at"],
                "instances": sorted(named, key=lambda name: (-named[name], name)),
                "evidence": _evidence(case).value,
                "explanation": explanation(case),
                "window_start_at": window_start_at,
            }
        )
    return out


def _case(
    cause: DiagnosisCause,
    mine: Sequence[tuple[GenerationRow, Found]],
    known: Context,
    parts: dict[Number, list[Number]],
    marks: Sequence[MarkRow],
) -> Case:
    return Case(
        cause=cause,
        rows=[g for g, _ in mine],
        found=[found for _, found in mine],
        known=known,
        numbers=[part for g, _ in mine for part in parts[number(g)]],
        marks=marks,
    )


def _converges(case: Case) -> bool:
    return case.cause != DiagnosisCause.FOLLOW_UPS or longest_run(case) <= CONVERGED


def _evidence(case: Case) -> Evidence:
    is_observed = all(found.evidence == Evidence.OBSERVED for found in case.found)
    is_observed |= case.cause == DiagnosisCause.DEPLOY and case.is_announced
    return Evidence.OBSERVED if is_observed else Evidence.INFERRED


def overtaken(rows: Sequence[GenerationRow]) -> dict[Number, list[Number]]:
    """Return, by completed generation, the generations that it overtook and itself."""
    out: dict[Number, list[Number]] = {}
    waiting: list[Number] = []
    for g in rows:
        waiting.append(number(g))
        if g["completed_at"] is not None:
            out[number(g)], waiting = waiting, []
    return out


def _lost(silver: Silver, rows: Sequence[GenerationRow], parts: dict[Number, list[Number]]) -> dict[Number, int]:
    """Return the loss in resource-milliseconds by completed generation.

    The loss of an overtaken generation counts for the generation that overtook it. A static member that returned within
    a generation was not stopped by a rebalance, so its loss is left out.
    """
    pays = {part: whole for whole, mine in parts.items() for part in mine}
    offsets = {number(g): g["source_offset"] for g in rows}
    out: dict[Number, int] = defaultdict(int)
    for stall in silver["stalls"]:
        made = (stall["incarnation"], stall["generation_id"])
        is_restart = stall["cause"] == StallCause.STATIC_RESTART and stall["stopped_by_offset"] != offsets.get(made)
        if made in pays and not is_restart:
            out[pays[made]] += lost_ms(stall)
    return out
