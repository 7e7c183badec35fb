"""Rows of `generations` and `generation_members` for epochs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pipelines.silver.client_library import Recognized, consumer_library, with_group
from pipelines.silver.coordinator_assigned.epochs import (
    FIRST_EPOCHS,
    NOTHING,
    Epoch,
    EpochMember,
    Happening,
    TargetAssignment,
)
from pipelines.silver.history import Event, Resource
from pipelines.silver.member_rows import not_before, resources
from pipelines.silver.phases import NEAR_MS
from pipelines.silver.triggers import Cause
from schemas.coordinator_log import EventKind
from schemas.rows import GenerationMemberOfGroup, GenerationOfGroup
from schemas.states import Evidence, GenerationOutcome, GroupProtocol, GroupType, RebalanceMode

TYPES = {
    GroupProtocol.CONSUMER: GroupType.CONSUMER,
    GroupProtocol.STREAMS: GroupType.STREAMS,
    GroupProtocol.SHARE: GroupType.SHARE,
}


def epoch_row(
    epoch: Epoch, protocol: GroupProtocol, why: Cause, lines: EpochLines, moved: int | None
) -> GenerationOfGroup:
    """Return the row of `generations`. The record of the bump has the exact time, so it is the start as well."""
    at, completed = epoch.joined_at, epoch.completed_at
    length = None if completed is None else completed - at
    slowest, waited = _slowest(epoch)
    previous = epoch.previous
    bumped = lines.bumped(epoch)
    members = _at_the_bump(epoch)
    return {
        "incarnation": epoch.incarnation,
        "generation_id": epoch.number,
        "joined_at": at,
        "outcome": outcome(epoch),
        "group_type": TYPES[protocol],
        "group_protocol": protocol,
        "protocol_type": protocol.value,
        "assignor": assignor(epoch.members.values()),
        "rebalance_mode": RebalanceMode.NONE if protocol == GroupProtocol.SHARE else RebalanceMode.INCREMENTAL,
        "leader_member_id": None,
        "coordinator_id": bumped["broker_id"] if bumped else None,
        "member_count": len(members),
        "static_member_count": sum(s.group_instance_id is not None for s in members.values()),
        "prepared_at": at,
        "prepared_at_earliest": at,
        "prepared_at_latest": at,
        "synced_at": epoch.synced_at,
        "completed_at": completed,
        "join_ms": 0,
        "sync_ms": None if epoch.synced_at is None else epoch.synced_at - at,
        "rebalance_ms": length,
        "rebalance_ms_min": length,
        "rebalance_ms_max": length,
        "trigger": why.trigger,
        "trigger_evidence": why.evidence,
        "trigger_member_id": why.member_id,
        "trigger_reason": why.reason,
        "client_reason": why.client_reason,
        "slowest_member_id": slowest,
        "slowest_waited_ms": waited,
        "joined_member_ids": sorted(members.keys() - epoch.before.keys()) if _is_before_known(epoch) else None,
        "left_member_ids": sorted(epoch.before.keys() - members.keys()) if previous else None,
        "resources_assigned": None if epoch.target is None and not epoch.is_empty else _count(epoch),
        "resources_moved": moved,
        "not_costed": None,
        "resources_not_costed": None,
        "missing_partitions": None,
        # Each epoch has a record, so the record of a missing number was compacted.
        "skipped_generations": 0 if _follows(epoch) else None,
        "is_empty": epoch.is_empty,
        "evidence": Evidence.OBSERVED,
        "log_epoch": epoch.position[0],
        "source_partition": epoch.record.partition,
        "source_offset": epoch.position[1],
        "folded_count": None,
        "last_generation_id": None,
        "last_completed_at": None,
        "unstable_ms": None,
    }


def outcome(epoch: Epoch) -> GenerationOutcome:
    if epoch.is_empty:
        return GenerationOutcome.EMPTY
    if epoch.completed_at is not None:
        return GenerationOutcome.COMPLETED
    return GenerationOutcome.OPEN if epoch.overtaken_at is None else GenerationOutcome.OVERTAKEN


def assignor(members: Iterable[EpochMember]) -> str | None:
    """Return the assignor that most members request, or None if no member requests one and the broker's default
    applies.
    """
    asked = Counter(s.assignor for s in members if s.assignor)
    return min(asked, key=lambda name: (-asked[name], name)) if asked else None


def _at_the_bump(epoch: Epoch) -> dict[str, EpochMember]:
    return {m: s for m, s in epoch.members.items() if m not in epoch.began}


def _is_before_known(epoch: Epoch) -> bool:
    return epoch.previous is not None or epoch.number in FIRST_EPOCHS


def _follows(epoch: Epoch) -> bool:
    previous = epoch.previous
    return epoch.number in FIRST_EPOCHS if previous is None else epoch.number == previous.number + 1


def _count(epoch: Epoch) -> int:
    """Return the count of assigned resources. A share group assigns the same partition to several members."""
    return len({r for target in (epoch.target or {}).values() for r in target.active})


def _slowest(epoch: Epoch) -> tuple[str | None, int | None]:
    """Return the member that reconciled last, and the milliseconds between it and the member before it."""
    reached = sorted(((at, m) for m, at in epoch.reconciled.items()), reverse=True)
    if epoch.completed_at is None or len(reached) < 2 or reached[0][0] == reached[1][0]:
        return None, None
    return reached[0][1], reached[0][0] - max(reached[1][0], epoch.synced_at or 0)


def member_rows(epoch: Epoch, protocol: GroupProtocol, until: int | None) -> list[GenerationMemberOfGroup]:
    """Return rows of `generation_members`."""
    libraries = with_group(
        {
            m: consumer_library(m, member.client_id, protocol, member.assignor, member.rebalance_timeout_ms)
            for m, member in epoch.members.items()
        }
    )
    return [_member_row(epoch, member, until, libraries[m]) for m, member in sorted(epoch.members.items())]


def _member_row(epoch: Epoch, member: EpochMember, until: int | None, library: Recognized) -> GenerationMemberOfGroup:
    member_id = member.member_id
    current = epoch.owned.get(member_id)
    target = (epoch.target or {}).get(member_id, TargetAssignment()) if epoch.target is not None else None
    topics = member.topics | epoch.matched.get(member.regex or "", frozenset())
    is_new = member_id not in epoch.before or current is None
    since, end = epoch.began.get(member_id, epoch.joined_at), epoch.ended.get(member_id, until)
    return {
        "incarnation": epoch.incarnation,
        "generation_id": epoch.number,
        "member_id": member_id,
        "valid_from_at": since,
        "valid_to_at": not_before(since, end),
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "client_library": library.library,
        "client_library_sign": library.sign,
        "client_library_evidence": library.evidence,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "is_leader": False,
        "previous_generation_id": current.epoch if current is not None else (-1 if is_new else None),
        "subscribed_topics": sorted(topics),
        "subscription_version": None,
        "subscription_rack": None,
        "user_data_layout": None,
        "owned": resources(current.assigned if current is not None else NOTHING),
        "assigned": None if target is None else resources(target.active),
        "standby": None if target is None else resources(target.standby),
        "warmup": None if target is None else resources(target.warmup),
        "connect_delay_ms": None,
        "rejoined_at_earliest": None,
        "rejoined_at_latest": None,
        "reconciled_at": epoch.reconciled.get(member_id) if epoch.synced_at is not None else None,
    }


def moved(epoch: Epoch, last_owner: dict[Resource, str]) -> int | None:
    """Return the count of resources with another target owner than before, or None without a target.

    It also updates `last_owner`.
    """
    if epoch.target is None:
        return 0 if epoch.is_empty else None
    owners = epoch.owners
    changed = sum(r in last_owner and last_owner[r] != owner for r, owner in owners.items())
    last_owner.update(owners)
    return changed


def rename(last_owner: dict[Resource, str], returned: Happening) -> None:
    """Pass the resources of a static member's old process to its new process."""
    if returned.before is None or returned.member is None:
        return
    for resource, owner in last_owner.items():
        if owner == returned.before.member_id:
            last_owner[resource] = returned.member.member_id


class EpochLines:
    """The log lines about bumps, by epoch."""

    def __init__(self, events: list[Event]) -> None:
        self._bumps: dict[int, list[Event]] = {}
        for event in events:
            if event.kind == EventKind.EPOCH_BUMPED and event["generation_id"] is not None:
                self._bumps.setdefault(event["generation_id"], []).append(event)

    def bumped(self, epoch: Epoch) -> Event | None:
        near = [e for e in self._bumps.get(epoch.number, ()) if abs(e.at - epoch.joined_at) <= NEAR_MS + e.precision]
        return min(near, key=lambda e: abs(e.at - epoch.joined_at), default=None)
