"""Whether a change in a group's records helped: the cost of absences before and after the change."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.gold.advice.absence_costs import Comparison, absence_costs, compare, status
from pipelines.gold.advice.replay import Policy
from pipelines.gold.churn import Churn, churn
from pipelines.gold.memberships import Silver, number
from pipelines.gold.window import window
from schemas.rows import AdviceOfGroup, GenerationMemberRow, GenerationRow
from schemas.states import AdviceAction, AdviceStatus, GroupProtocol, RebalanceMode
from schemas.written import signed, signed_between


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A change of a group's settings, and its result.

    `found` compares the absences since the change with those before it. It is None while there are too few absences.
    """

    action: AdviceAction
    found: Comparison | None


def policies(silver: Silver) -> list[tuple[GenerationRow, Policy]]:
    """Return each generation that had members, with the policy under which the group ran in it."""
    members: dict[tuple[int, int], list[GenerationMemberRow]] = {}
    for row in silver["generation_members"]:
        members.setdefault(number(row), []).append(row)
    out: list[tuple[GenerationRow, Policy]] = []
    for g in sorted(silver["generations"], key=number):
        mine = members.get(number(g))
        if g["is_empty"] or not mine:
            continue
        is_cooperative = g["rebalance_mode"] == RebalanceMode.COOPERATIVE
        if g["rebalance_mode"] in (None, RebalanceMode.UNKNOWN) and out and out[-1][0]["assignor"] == g["assignor"]:
            # A single generation does not show which resources members release.
            is_cooperative = out[-1][1].is_cooperative
        is_static = all(m["group_instance_id"] for m in mine)
        is_consumer_protocol = g["group_protocol"] == GroupProtocol.CONSUMER
        policy = Policy(
            is_consumer_protocol=is_consumer_protocol,
            is_cooperative=is_cooperative and not is_consumer_protocol,
            is_static=is_static,
        )
        out.append((g, policy))
    return out


def policy_in_force(silver: Silver) -> tuple[Policy, int | None]:
    """Return the policy of the newest generation and its start in milliseconds; None if the rows show no other policy
    before.
    """
    known = policies(silver)
    if not known:
        return Policy(), None
    newest = known[-1][1]
    for (_, before), (g, _) in zip(reversed(known[:-1]), reversed(known), strict=False):
        if before != newest and not _only_unknown(known, before):
            return newest, int(g["joined_at"])
    return newest, None


def _only_unknown(known: list[tuple[GenerationRow, Policy]], policy: Policy) -> bool:
    """Return whether a policy occurs only in generations with unknown rebalance mode, such as a group's first one."""
    return all(g["rebalance_mode"] in (None, RebalanceMode.UNKNOWN) for g, p in known if p == policy)


def trial(silver: Silver, since_ms: int, after: Churn | None, quiet_ms: int) -> Trial | None:
    """Return the result of the change at `since_ms`; None if the change is not one of the known actions."""
    earlier = window(silver, 0, since_ms)
    found = policies(earlier)
    action = _action(found[-1][1], policy_in_force(silver)[0]) if found else None
    if action is None:
        return None
    before = churn(earlier, quiet_ms)
    if before is None or after is None:
        return Trial(action=action, found=None)
    return Trial(action=action, found=compare(absence_costs(before), absence_costs(after)))


def _action(before: Policy, after: Policy) -> AdviceAction | None:
    if after.is_consumer_protocol and before != after:
        return AdviceAction.CONSUMER_PROTOCOL_STATIC if after.is_static else AdviceAction.CONSUMER_PROTOCOL
    if after.is_static and not before.is_static:
        return AdviceAction.STATIC_MEMBERSHIP
    if after.is_cooperative and not before.is_cooperative:
        return AdviceAction.COOPERATIVE_ASSIGNOR
    return None


def with_outcome(of: Trial, row: AdviceOfGroup, *, rank: int) -> AdviceOfGroup:
    """Return the row of an action that is in force, from a row that recommends nothing."""
    if of.found is None:
        text = "This change is in force. There were too few absences since to judge whether it helps."
    else:
        limits = signed_between(of.found.low, of.found.high)
        text = (
            "This change is in force. Compared with the same number of earlier absences, those since saved "
            f"{signed(of.found.saved)} resource-seconds (90 % interval: {limits})."
        )
        if status(of.found) == AdviceStatus.TRIED:
            text += " Chance alone may explain that, so it is too early to judge."
    return {
        **row,
        "action": of.action.value,
        "is_recommended": False,
        "rank": rank,
        "status": status(of.found).value,
        "saving_measured": of.found.saved if of.found else None,
        "explanation": text,
    }
