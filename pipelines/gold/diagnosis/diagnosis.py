"""Rows of `diagnoses`: the causes of a group's rebalances in one window; each completed rebalance has one cause.

Static members that return without a rebalance have a cause, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pipelines.gold.churn import known_instants
from pipelines.gold.diagnosis.cases import Case, longest_run
from pipelines.gold.diagnosis.departures import Departure
from pipelines.gold.diagnosis.explanations import explanation
from pipelines.gold.diagnosis.losses import losses_of_returns
from pipelines.gold.diagnosis.verdicts import VERDICTS, Judged, Judgment, heaviest, judgment
from pipelines.gold.memberships import Silver, number
from schemas.folded_rows import count_of
from schemas.rows import DiagnosisOfGroup, MarkRow
from schemas.states import NORMAL_CAUSES, DiagnosisCause, Evidence
from schemas.thresholds import CONVERGED


def diagnosis_rows(
    silver: Silver, start_ms: int, marks: Sequence[MarkRow] = (), judged: Judgment | None = None
) -> list[DiagnosisOfGroup]:
    """Return a row for each cause, the most expensive first; their `share` of the rebalances adds up to 1.

    The list is empty if no rebalance completed and no static member returned without one. `silver` is one window of
    one group, as `window` returns it. Generations that joined before `start_ms` only show which members were present.
    `marks` are rows of that table, of the group or its whole cluster, in order of time. `judged` is the judgment of
    `silver` from `start_ms` on with these marks, if it was made already. Timestamps are in milliseconds.
    """
    rows = [g for g in sorted(silver["generations"], key=number) if g["joined_at"] >= start_ms]
    judged = judged or judgment(silver, start_ms, marks)
    cases: dict[DiagnosisCause, list[Judged]] = defaultdict(list)
    for rebalance in judged.rebalances:
        cases[rebalance.found.cause].append(rebalance)
    returned: dict[DiagnosisCause, list[Departure]] = defaultdict(list)
    for d in judged.known.returns:
        if d.at >= start_ms:
            returned[d.cause].append(d)
            cases.setdefault(d.cause, [])
    if not cases:
        return []
    as_of = max(known_instants(silver, rows))
    window_start_at = max(start_ms, min(g["joined_at"] for g in silver["generations"]))
    of_returns = losses_of_returns(silver.get("stalls", ()), silver["generations"])
    costs = {
        cause: sum(
            [*(j.loss.best for j in mine), *(of_returns[m].best for m in _members(returned[cause]) if m in of_returns)]
        )
        / 1000
        for cause, mine in cases.items()
    }
    total = count_of(j.row for j in judged.rebalances)
    ranked = sorted(cases, key=lambda cause: (-costs[cause], -count_of(j.row for j in cases[cause]), cause.value))
    out: list[DiagnosisOfGroup] = []
    for rank, cause in enumerate(ranked, 1):
        case = _case(cause, cases[cause], judged, marks, returned[cause])
        named = Counter([*case.names, *(d.instance.label for d in case.returns)])
        out.append(
            {
                "as_of": as_of,
                "cause": cause.value,
                "rank": rank,
                "rebalances": count_of(case.rows),
                "share": count_of(case.rows) / total if total else 0.0,
                "lost_resource_seconds": costs[cause],
                "is_normal": cause in NORMAL_CAUSES and _converges(case),
                "first_at": case.moments[0],
                "last_at": case.moments[-1],
                "instances": sorted(named, key=lambda name: (-named[name], name)),
                "evidence": _evidence(case).value,
                "explanation": explanation(case),
                "window_start_at": window_start_at,
                "verdict": (heaviest(cases[cause]) if cases[cause] else VERDICTS[cause]).value,
            }
        )
    return out


def _members(returned: Sequence[Departure]) -> list[str]:
    return list(dict.fromkeys(d.membership.member_id for d in returned))


def _case(
    cause: DiagnosisCause,
    mine: Sequence[Judged],
    judged: Judgment,
    marks: Sequence[MarkRow],
    returned: Sequence[Departure],
) -> Case:
    return Case(
        cause=cause,
        rows=[j.row for j in mine],
        found=[j.found for j in mine],
        known=judged.known,
        numbers=[part for j in mine for part in judged.parts[number(j.row)]],
        marks=marks,
        returns=returned,
    )


def _converges(case: Case) -> bool:
    return case.cause != DiagnosisCause.FOLLOW_UPS or longest_run(case) <= CONVERGED


def _evidence(case: Case) -> Evidence:
    is_observed = not case.returns and all(found.evidence == Evidence.OBSERVED for found in case.found)
    is_observed |= case.cause == DiagnosisCause.DEPLOY and case.is_announced
    return Evidence.OBSERVED if is_observed else Evidence.INFERRED
