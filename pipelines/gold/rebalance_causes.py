"""The diagnosed cause of each rebalance and departure of a group, for storms and advice, which judge no causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.gold.diagnosis.causes import Context
from pipelines.gold.diagnosis.verdicts import Judged, judgment
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import Silver, number
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from schemas.states import DiagnosisCause


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceCauses:
    """Causes by generation and, for static members that returned without a rebalance, by the time of their return.

    A generation that never completed has the cause of the generation that overtook it. `rebalances` are the completed
    ones with their verdicts, in order. Times are in milliseconds.
    """

    of_generation: Mapping[Number, DiagnosisCause]
    of_return: Mapping[int, DiagnosisCause]
    rebalances: Sequence[Judged] = ()

    def cause(self, generation: Number | None, at: int) -> DiagnosisCause | None:
        """Return the cause of a generation or, if that is None, of a return at `at`. None means: no diagnosis."""
        return self.of_return.get(at) if generation is None else self.of_generation.get(generation)


def rebalance_causes(silver: Silver, pods: PodIndex = NO_PODS) -> RebalanceCauses:
    """Return the causes for one group.

    `silver` holds the group's generations, generation_members and group_events, and stalls for the losses, in any
    order. The first generation only shows which members were present. `pods` are the pods of the cluster.
    """
    judged = judgment(silver, pods=pods)
    causes = {number(j.row): j.found.cause for j in judged.rebalances}
    return RebalanceCauses(
        of_generation={part: causes[whole] for whole, parts in judged.parts.items() for part in parts},
        of_return={d.at: d.cause for d in judged.known.returns},
        rebalances=judged.rebalances,
    )


def deploy_departures(known: Context) -> frozenset[tuple[str, int]]:
    """Return the member id and time (milliseconds) of each departure that diagnoses ascribe to a deploy."""
    gone = [*(d for mine in known.departures.values() for d in mine), *known.returns]
    return frozenset((d.membership.member_id, d.at) for d in gone if d.cause == DiagnosisCause.DEPLOY)
