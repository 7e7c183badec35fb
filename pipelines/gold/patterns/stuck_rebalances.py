"""Rebalances that do not complete: whom the group waits for, and which timeout ends the wait and when.

- `PreparingRebalance`: the coordinator waits for members of the last generation that have not rejoined. Its log does
  not name who rejoins, but who joins anew, who is gone and who began the rebalance. All others are candidates. A dead
  one is removed when its session ends, so the wait beyond that is for a member that still sends heartbeats, but does
  not poll. The rebalance timeout (`max.poll.interval.ms` of the slowest) ends it.
- `CompletingRebalance`: the coordinator waits for the leader, which joined and never sent the assignment.
- `Assigning`, `Reconciling` (KIP-848): it waits for members that have not reached the newest epoch, as records show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.gold.observed_settings import whole_number
from pipelines.gold.patterns.cluster_findings import ClusterFacts, ClusterFinding, Row, Unsettled, named
from pipelines.gold.wording import shortened
from schemas.coordinator_log import EventKind
from schemas.rows import GenerationMemberRow
from schemas.states import Evidence, GroupProtocol, GroupState, GroupType, Pattern, Trigger
from schemas.thresholds import MINUTE_MS
from schemas.written import count, duration, instant

OPEN_MS = MINUTE_MS
"""Minimum age of an open rebalance for a row. The alert has its own limit (`stuck_seconds`)."""

POLLED_MS = 5 * MINUTE_MS
"""Greatest age of the newest poll if only polls show the rebalance."""

GONE = (
    EventKind.LEFT, EventKind.SESSION_EXPIRED, EventKind.REMOVED_NOT_REJOINED, EventKind.REMOVED_NOT_SYNCED,
    EventKind.MEMBER_FENCED,
)  # fmt: skip
ADDED = (EventKind.MEMBER_ADDED, EventKind.STATIC_ADDED)
REJOINING = (
    Trigger.LEADER_REJOINED, Trigger.UNKNOWN, Trigger.SUBSCRIPTION_CHANGED, Trigger.METADATA_CHANGED,
    Trigger.COOPERATIVE_FOLLOWUP, Trigger.ENFORCED, Trigger.PROBING, Trigger.STATIC_MEMBER_CHANGED,
)  # fmt: skip
"""Triggers whose member had sent its request to join when the rebalance began."""

JOINING = (Trigger.MEMBER_JOINED, Trigger.FIRST_MEMBER)
UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")

SESSION = {
    GroupProtocol.CONSUMER: ("group.consumer.session.timeout.ms", 45_000),
    GroupProtocol.STREAMS: ("group.streams.session.timeout.ms", 45_000),
}
"""The broker's setting for the session of groups whose coordinator assigns, and Kafka's default in ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Whom a group waits for (`members`; empty: not known), why, and what ends the wait.

    `others` are client ids of members that joined after the last generation.
    """

    members: Sequence[GenerationMemberRow]
    says: str
    ends: str
    evidence: Evidence
    action: str
    others: Sequence[str] = ()


def stuck_rebalances(facts: ClusterFacts) -> list[ClusterFinding]:
    """Return the rebalances that are open at the end of the cluster's data, each with whom it waits for."""
    found = []
    for one in facts.unsettled:
        group, polled = one.group, one.polled
        opened = group["open_rebalance_since_at"]
        is_polled = opened is None and polled is not None
        since = polled["at"] if opened is None and polled is not None else opened
        last = facts.until_ms if not is_polled else facts.polled_until_ms or 0
        if since is None or group["is_deleted"] or last - since < OPEN_MS or facts.until_ms - last > POLLED_MS:
            continue
        state = GroupState(polled["state"]) if is_polled and polled is not None else GroupState(group["state"])
        wait = _wait(facts, one, state, since)
        found.append(
            ClusterFinding(
                pattern=Pattern.STUCK_REBALANCE,
                subject=group["group_id"],
                started_at=since,
                last_at=last,
                ended_at=None,
                times=1,
                group_ids=[group["group_id"]],
                instances=[*_instances(wait.members), *wait.others],
                sources=_sources(one, is_polled=is_polled),
                evidence=wait.evidence,
                explanation=(
                    f"The rebalance began {'before the poll at' if is_polled else 'at'} {instant(since)} and is in "
                    f"state {state}. {wait.says} {wait.ends}"
                ),
                action=wait.action,
            )
        )
    return found


def _sources(one: Unsettled, *, is_polled: bool) -> list[str]:
    return sorted({"topic"} | ({"log"} if one.lines else set()) | ({"poll"} if is_polled else set()))


def _wait(facts: ClusterFacts, one: Unsettled, state: GroupState, since: int) -> Wait:
    if state == GroupState.COMPLETING_REBALANCE:
        return _for_leader(one, since)
    if state == GroupState.PREPARING_REBALANCE:
        return _for_members(one, since)
    return _for_epoch(facts, one)


def _for_members(one: Unsettled, since: int) -> Wait:
    gone = {member for line in one.lines if line["event_kind"] in GONE for member in _named_in(line)}
    gone |= {line["replaced_member_id"] for line in one.lines if line["replaced_member_id"]}
    failed, current = _attempts(one.lines)
    joined = {
        line["member_id"]
        for line in current
        if line["event_kind"] == EventKind.PREPARING and line["trigger"] in REJOINING and line["member_id"]
    }
    missing = [m for m in one.members if m["member_id"] not in gone | joined]
    known = {m["member_id"] for m in one.members}
    tried = [m for m in _added(failed) if m not in gone | joined | known]
    new = [m for m in _added(current) if m not in gone]
    starts = [
        line["event_at"]
        for line in current
        if line["event_kind"] == EventKind.COULD_NOT_COMPLETE or (failed and line["event_kind"] == EventKind.PREPARING)
    ]
    return Wait(
        members=missing,
        others=[_client_of(member) for member in tried],
        says=_says_who(one, missing, tried) + _says_new(len(new)),
        ends=_ends_of_join(one, max([since, *starts])),
        evidence=Evidence.BOUNDED if len(missing) + len(tried) == 1 and one.lines else Evidence.INFERRED,
        action=(
            "Look at the poll loop of the members named: a thread dump shows what they are busy with. Restart the one "
            "that hangs; the coordinator goes on without it when it leaves or its session ends."
        ),
    )


def _attempts(lines: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the lines of join phases that ended without a stored assignment, and those of the open one."""
    ended = max((at for at, e in enumerate(lines) if e["event_kind"] == EventKind.STABILIZED), default=-1)
    return lines[: ended + 1], lines[ended + 1 :]


def _added(lines: Iterable[Row]) -> list[str]:
    """Return the members that joined anew, in order. The line before that of the start may not be among `lines`."""
    return list(
        dict.fromkeys(
            line["member_id"]
            for line in lines
            if line["member_id"]
            and (
                line["event_kind"] in ADDED
                or (line["event_kind"] == EventKind.PREPARING and line["trigger"] in JOINING)
            )
        )
    )


def _says_who(one: Unsettled, missing: Sequence[GenerationMemberRow], tried: Sequence[str]) -> str:
    if not missing and not tried:
        return (
            "No member of the last generation is left to wait for; who has joined since is not known."
            if one.members
            else "The last generation is not known, so whom it waits for is not known."
        )
    whom = [*_hosted(missing), *(shortened(_client_of(member)) for member in tried)]
    since = "the last generation" if not tried else "the last generation and of the attempts since then"
    if not one.lines:
        return (
            f"It waits for one or more of the members of the last generation ({named(whom, 'member')}), or for members "
            "that joined since then: without the coordinator's log, this is not known."
        )
    if len(whom) == 1:
        return f"It waits for {named(whom, 'member')}, the only member of {since} that may not have rejoined."
    return (
        f"It waits for one or more of {count(len(whom), 'member')} of {since}: {named(whom, 'member')}. "
        "The coordinator's log does not name those that have rejoined."
    )


def _says_new(new: int) -> str:
    return f" {count(new, 'new member')} joined and {'waits' if new == 1 else 'wait'}." if new else ""


def _client_of(member_id: str) -> str:
    """Return the client id or instance id with which the coordinator began a member id, or the id."""
    return UUID.sub("", member_id) or member_id


def _ends_of_join(one: Unsettled, since: int) -> str:
    members = one.members
    slowest = max(members, key=lambda m: m["rebalance_timeout_ms"] or 0, default=None)
    longest = slowest["rebalance_timeout_ms"] if slowest is not None else None
    sessions = [m["session_timeout_ms"] for m in members if m["session_timeout_ms"]]
    if not longest or slowest is None:
        return "Which timeout ends it is not known: no record has the members' timeouts."
    dead = f" A dead member is removed earlier, when its session of {duration(max(sessions))} ends." if sessions else ""
    return (
        f"The rebalance timeout ends it at the latest: {duration(longest)}, that of {_name(slowest)} "
        f"({_setting(one)}), which is at {instant(since + longest)}.{dead}"
    )


def _setting(one: Unsettled) -> str:
    is_connect = one.group["group_type"] == GroupType.CONNECT
    return "rebalance.timeout.ms of the worker" if is_connect else "max.poll.interval.ms of a Java consumer"


def _for_leader(one: Unsettled, since: int) -> Wait:
    joined_at = max((e["event_at"] for e in one.lines if e["event_kind"] == EventKind.STABILIZED), default=None)
    elected = [e["leader_member_id"] for e in one.lines if e["event_kind"] == EventKind.LEADER_REPLACED]
    gone = {member for line in one.lines if line["event_kind"] in GONE for member in _named_in(line)}
    before = next((m for m in one.members if m["is_leader"] and m["member_id"] not in gone), None)
    first = next((m for m in _added(one.lines) if m not in gone), None)
    member = next((m for m in one.members if elected and m["member_id"] == elected[-1]), None)
    if elected:
        who, evidence = (_described([member]) if member else shortened(elected[-1])), Evidence.OBSERVED
    elif before is not None:
        member, who, evidence = before, f"{_described([before])} (the leader of the last generation)", Evidence.INFERRED
    elif first is not None:
        who, evidence = f"{shortened(_client_of(first))} (the first that joined)", Evidence.INFERRED
    else:
        who, evidence = "", Evidence.INFERRED
    says = f"It waits for its leader, {who or 'which is not known'}, to send the assignment."
    return Wait(
        members=[member] if member else [],
        others=[] if member or elected or first is None else [_client_of(first)],
        says=says,
        ends=_ends_of_sync(one.members, member, joined_at if joined_at is not None else since),
        evidence=evidence,
        action=(
            "Restart the leader: another member becomes leader. If it hangs while it computes the assignment, look at "
            "its assignor, and at its requests for the metadata of topics that do not exist."
        ),
    )


def _ends_of_sync(members: Sequence[GenerationMemberRow], leader: GenerationMemberRow | None, since: int) -> str:
    longest = max((m["rebalance_timeout_ms"] or 0 for m in members), default=0)
    if not longest:
        return "Which timeout ends it is not known: no record has the members' timeouts."
    session = leader["session_timeout_ms"] if leader is not None else None
    dead = f" If the leader is dead, its session of {duration(session)} ends it earlier." if session else ""
    return (
        f"The rebalance timeout of {duration(longest)} ends it at {instant(since + longest)}: since Kafka 2.8, the "
        f"coordinator then removes members that have not synced.{dead}"
    )


def _for_epoch(facts: ClusterFacts, one: Unsettled) -> Wait:
    missing = [m for m in one.members if m["reconciled_at"] is None]
    number = one.group["generation_id"]
    says = (
        f"{count(len(missing), 'member')} did not reach epoch {number} yet: {_described(missing)}."
        if missing
        else "Every member has reached its epoch; the coordinator has not computed the next assignment."
    )
    name, usual = SESSION.get(GroupProtocol(one.group["group_protocol"] or "consumer"), ("", 0))
    given = whole_number(facts.settings, name)
    session = usual if given is None else given
    source = ", Kafka's default" if given is None else ""
    longest = max((m["rebalance_timeout_ms"] or 0 for m in missing), default=0)
    dead = f"A dead member is removed when its session of {duration(session)} ends ({name}{source})." if session else ""
    ends = (
        f"A member that does not give up its partitions is fenced after its rebalance timeout, {duration(longest)}. "
        if longest
        else ""
    )
    return Wait(
        members=missing,
        says=says,
        ends=(ends + dead).strip(),
        evidence=Evidence.OBSERVED if missing else Evidence.INFERRED,
        action="Look at the members named: a callback on revocation that blocks, or a poll loop that does not poll.",
    )


def _named_in(line: Row) -> Iterable[str]:
    return [*(line["member_ids"] or ()), *([line["member_id"]] if line["member_id"] else [])]


def _name(member: GenerationMemberRow) -> str:
    return shortened(member["group_instance_id"] or member["client_id"] or member["member_id"])


def _described(members: Sequence[GenerationMemberRow]) -> str:
    return named(_hosted(members), "member")


def _hosted(members: Sequence[GenerationMemberRow]) -> list[str]:
    return [f"{_name(m)} at {shortened(m['client_host'])}" if m["client_host"] else _name(m) for m in members]


def _instances(members: Sequence[GenerationMemberRow]) -> list[str]:
    names = [m["group_instance_id"] or m["client_id"] or m["member_id"] for m in members]
    return list(dict.fromkeys([*names, *(m["client_host"] for m in members if m["client_host"])]))
