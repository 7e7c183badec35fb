"""Static membership that does not work: one group.instance.id in two processes, or a new one at each start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.gold.instance_tracker import Membership
from pipelines.gold.patterns.group_facts import LOG, TOPIC, GroupFacts, GroupFinding, unique
from pipelines.gold.wording import period, times
from schemas.states import Evidence, GroupEventKind, Pattern
from schemas.thresholds import DEFAULT_SESSION_MS, LOOP, OVERLAP_MS, RESTART_MS
from schemas.written import duration

Process = tuple[str, str]
"""Client id and host."""


@dataclass(frozen=True, slots=True)
class _Holder:
    """A process that held an instance id from `at` on."""

    at: int
    member_id: str
    process: Process


def instance_id_used_twice(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield instance ids that two hosts take from each other, or with which members are fenced again and again."""
    holders, fenced = _holders(facts), _fenced(facts)
    for instance_id in sorted({*holders, *fenced}):
        mine, lines = holders.get(instance_id, []), fenced.get(instance_id, [])
        taken = _taken_back(mine)
        timestamps = [h.at for h in taken] if len(taken) >= LOOP else lines if _is_repeated(facts, lines, mine) else []
        if not timestamps:
            continue
        processes = unique(f"{client or instance_id} ({host})" for client, host in (h.process for h in taken or mine))
        usual = period(timestamps)
        often = (
            f"every {duration(usual)}" if usual is not None else f"within {duration(timestamps[-1] - timestamps[0])}"
        )
        yield GroupFinding(
            pattern=Pattern.INSTANCE_ID_USED_TWICE,
            subject=instance_id,
            started_at=timestamps[0],
            last_at=timestamps[-1],
            ended_at=facts.ended(timestamps[-1]),
            times=len(timestamps),
            instances=[instance_id, *processes],
            sources=(TOPIC, LOG) if lines and taken else (LOG,) if lines else (TOPIC,),
            evidence=Evidence.OBSERVED if lines else Evidence.INFERRED,
            explanation=_twice(instance_id, taken, lines, processes, often),
            action=(
                "Give each process its own group.instance.id, for example the ordinal of its StatefulSet pod. Look for "
                "a second deployment, an old host, or a scheduler that starts the new process before the old one "
                "stopped."
            ),
        )


def _twice(
    instance_id: str, taken: Sequence[_Holder], lines: Sequence[int], processes: Sequence[str], often: str
) -> str:
    parts = []
    if len(taken) >= LOOP:
        parts.append(
            f"The group.instance.id {instance_id} went back to a process that had lost it {times(len(taken))}, "
            f"{often}: {', '.join(processes[:4])}."
        )
    if lines:
        parts.append(f"The coordinator fenced or refused a member with this id {times(len(lines))}.")
    return " ".join(parts)


def _holders(facts: GroupFacts) -> dict[str, list[_Holder]]:
    """Return by instance id who held it, in order of time."""
    found: dict[str, list[_Holder]] = defaultdict(list)
    rows = sorted(facts.silver["generation_members"], key=lambda row: (row["valid_from_at"], row["member_id"]))
    for row in rows:
        if (instance_id := row["group_instance_id"]) is None:
            continue
        holder = _Holder(row["valid_from_at"], row["member_id"], (row["client_id"] or "", row["client_host"] or ""))
        if not found[instance_id] or found[instance_id][-1].member_id != holder.member_id:
            found[instance_id].append(holder)
    return found


def _taken_back(holders: Sequence[_Holder]) -> list[_Holder]:
    """Return the newest run of takeovers by a process that had the id before, with another process in between.

    A shorter run is returned if there is none of at least `LOOP`.
    """
    run, long = list[_Holder](), list[_Holder]()
    for at, holder in enumerate(holders[2:], 2):
        is_back = holder.process == holders[at - 2].process != holders[at - 1].process
        is_soon = holder.at - holders[at - 1].at <= RESTART_MS
        if is_back and is_soon:
            run = run if run and holder.at - run[-1].at <= RESTART_MS else []
            run.append(holder)
            long = run if len(run) >= LOOP else long
        elif len(run) < LOOP:
            run = []
    return long or run


def _fenced(facts: GroupFacts) -> dict[str, list[int]]:
    """Return by instance id when members with this id were fenced or refused."""
    ids = {row["member_id"]: row["group_instance_id"] for row in facts.silver["generation_members"]}
    found: dict[str, list[int]] = defaultdict(list)
    for event in facts.events:
        if event["kind"] == GroupEventKind.FENCED:
            instance_id = event["group_instance_id"] or ids.get(event["member_id"])
            if instance_id:
                found[instance_id].append(event["event_at"])
    return found


def _is_repeated(facts: GroupFacts, lines: Sequence[int], holders: Sequence[_Holder]) -> bool:
    """Return whether lines go on for longer than one takeover explains.

    A process that restarts before its old session expired may be refused several times, until that session is over.
    """
    if len(lines) < LOOP:
        return False
    sessions = [
        row["session_timeout_ms"] or DEFAULT_SESSION_MS
        for row in facts.silver["generation_members"]
        if row["member_id"] in {h.member_id for h in holders}
    ]
    return lines[-1] - lines[0] > 2 * max(sessions, default=DEFAULT_SESSION_MS)


def instance_id_not_kept(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield a group in which each restart brings a new group.instance.id under the old client id or on the old host."""
    static = sorted(
        (m for i in facts.known.instances for m in i.memberships if m.group_instance_id is not None),
        key=lambda m: (m.arrived_at, m.member_id),
    )
    if _is_any_kept(static) or any(e["kind"] == GroupEventKind.STATIC_RETURNED for e in facts.events):
        return
    pairs = list(_successions(static))
    if len(pairs) < LOOP or not {old.member_id for old, _ in pairs} & {new.member_id for _, new in pairs}:
        return
    silent = [old for old, _ in pairs if old.departure_kind == GroupEventKind.SESSION_EXPIRED]
    cost = f" {len(silent):,} of the old members held their partitions until the session expired." if silent else ""
    first, last = pairs[0], pairs[-1]
    yield GroupFinding(
        pattern=Pattern.INSTANCE_ID_NOT_KEPT,
        started_at=first[1].arrived_at,
        last_at=last[1].arrived_at,
        ended_at=None,
        times=len(pairs),
        instances=unique(str(new.group_instance_id) for _, new in reversed(pairs)),
        sources=facts.sources,
        evidence=Evidence.INFERRED,
        explanation=(
            f"A member came {times(len(pairs))} with a new group.instance.id under the client id or on "
            f"the host of one that had ended, and no id ever came back. For example, {first[1].group_instance_id} "
            f"followed {first[0].group_instance_id}.{cost}"
        ),
        action=(
            "Take group.instance.id from something that survives a restart, such as the ordinal of a StatefulSet pod "
            "or the host name. Otherwise remove it: with ids that never return, each restart waits for the session "
            "timeout."
        ),
    )


def _is_any_kept(static: Sequence[Membership]) -> bool:
    """Return whether an instance id came back with another member id."""
    seen: dict[str, str] = {}
    return any(seen.setdefault(str(m.group_instance_id), m.member_id) != m.member_id for m in static)


def _successions(static: Sequence[Membership]) -> Iterator[tuple[Membership, Membership]]:
    """Yield each member that ended, with the member of another id and the same client id or host that came next."""
    used: set[str] = set()
    for old in sorted((m for m in static if m.gone_at is not None), key=lambda m: m.gone_at or 0):
        stopped, gone = old.stopped_at or old.gone_at or 0, old.gone_at or 0
        near = [
            new
            for new in static
            if new.member_id not in used
            and new.joined_in is not None
            and new.group_instance_id != old.group_instance_id
            and _is_alike(old, new)
            and stopped - OVERLAP_MS <= new.arrived_at <= gone + RESTART_MS
            and new.arrived_at > old.arrived_at
        ]
        if near:
            used.add(near[0].member_id)
            yield old, near[0]


def _is_alike(old: Membership, new: Membership) -> bool:
    return (old.client_id == new.client_id != "") or (old.client_host == new.client_host != "")
