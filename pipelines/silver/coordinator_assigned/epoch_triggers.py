"""The cause of an epoch bump, from records of the same write; log lines show how a member departed."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned.epochs import FIRST_EPOCHS, ChangeKind, Epoch, Happening
from pipelines.silver.coordinator_assigned.hand_overs import Exits
from pipelines.silver.triggers import Cause
from schemas.states import Evidence, Trigger

DIFFERENCES = (
    (ChangeKind.JOINED, Trigger.MEMBER_JOINED),
    (ChangeKind.RETURNED, Trigger.STATIC_MEMBER_CHANGED),
    (ChangeKind.CHANGED, Trigger.SUBSCRIPTION_CHANGED),
    (ChangeKind.REGEX, Trigger.SUBSCRIPTION_CHANGED),
    (ChangeKind.METADATA, Trigger.METADATA_CHANGED),
)
"""Changes that the coordinator writes together with a bump. The first match is the cause."""


def epoch_cause(epoch: Epoch, exits: Exits) -> Cause:
    """Return the cause; `exits` has the reason for each departed member."""
    by_kind: dict[ChangeKind, list[Happening]] = {}
    for happening in epoch.why:
        by_kind.setdefault(happening.kind, []).append(happening)
    joined, gone = by_kind.get(ChangeKind.JOINED, []), by_kind.get(ChangeKind.GONE, [])
    previous = epoch.previous
    if previous is not None and previous.is_repeated:
        return _observed(Trigger.UPGRADE, joined)
    if previous is None and epoch.number not in FIRST_EPOCHS:
        return Cause(trigger=Trigger.UNKNOWN, evidence=Evidence.INFERRED)
    if _is_first(epoch):
        return _observed(Trigger.FIRST_MEMBER, joined)
    if gone:
        return Cause(trigger=Trigger.UNKNOWN, evidence=Evidence.INFERRED) if joined else _departure(gone, exits)
    for kind, trigger in DIFFERENCES:
        if kind in by_kind:
            return _observed(trigger, by_kind[kind])
    return Cause(trigger=Trigger.UNKNOWN, evidence=Evidence.INFERRED)


def _is_first(epoch: Epoch) -> bool:
    """Return whether the group was new or empty before."""
    return bool(epoch.members) and (epoch.previous is None or epoch.previous.is_empty)


def _observed(trigger: Trigger, by: list[Happening]) -> Cause:
    return Cause(trigger=trigger, evidence=Evidence.OBSERVED, member_id=_only(by))


def _only(by: list[Happening]) -> str | None:
    return by[0].member.member_id if len(by) == 1 and by[0].member is not None else None


def _departure(gone: list[Happening], exits: Exits) -> Cause:
    first = next(h for h in gone if h.member is not None)
    assert first.member is not None
    found = exits.get((first.record.position, first.member.member_id))
    if found is None:
        return Cause(trigger=Trigger.UNKNOWN, evidence=Evidence.INFERRED, member_id=_only(gone))
    return Cause(
        trigger=found.trigger,
        evidence=found.evidence,
        member_id=_only(gone),
        reason=found.line["reason"] if found.line else None,
        client_reason=found.line["client_reason"] if found.line else None,
    )
