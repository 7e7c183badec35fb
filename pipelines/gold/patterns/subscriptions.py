"""Members of one group that subscribe to different topics, and topics that nobody is assigned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.gold.instance_names import prefix
from pipelines.gold.patterns.group_facts import GroupFacts, GroupFinding, name_of, unique
from pipelines.gold.wording import with_repeats
from schemas.rows import GenerationMemberRow, GenerationRow
from schemas.states import Evidence, GroupProtocol, GroupType, Pattern, RebalanceMode
from schemas.thresholds import HOUR_MS, MINUTE_MS
from schemas.written import count, duration

LASTED_MS = 5 * MINUTE_MS
"""A topic that had no owner for less than this time is not reported once it has an owner again: the cause is a
rebalance, or the topic is new."""

HANDED_OVER_MS = MINUTE_MS
"""Cooperative members release partitions and rejoin within seconds; the partitions have no owner in between."""

DEPLOYED_MS = HOUR_MS
"""Longest deploy. While it lasts, old and new processes of one application may subscribe to different topics."""


@dataclass(slots=True)
class _Unowned:
    """Consecutive generations in which a subscribed topic has no owner."""

    topic: str
    first: GenerationRow
    owner_before: str | None
    times: int = 0


def topic_without_owner(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield topics to which members subscribe and of which no partition is assigned once the generation completed."""
    last_owner: dict[str, str] = {}
    runs: dict[str, _Unowned] = {}
    last: GenerationRow | None = None
    for g in facts.completed:
        if not _is_readable(g, facts.of(g)):
            continue
        members = facts.of(g)
        owned = {r["name"]: m["member_id"] for m in members for r in m["assigned"] or ()}
        unowned = {topic for m in members for topic in m["subscribed_topics"]} - owned.keys()
        for topic in runs.keys() - unowned:
            run, over_at = runs.pop(topic), g["completed_at"] or g["joined_at"]
            if last is not None and over_at - (run.first["completed_at"] or 0) >= LASTED_MS:
                yield _without_owner(facts, run, last, over_at)
        last_owner |= owned
        for topic in sorted(unowned):
            run = runs.setdefault(topic, _Unowned(topic, g, last_owner.get(topic)))
            run.times += 1
        last = g
    if last is None or not facts.is_current(last):
        return
    for run in runs.values():
        if not _is_handed_over(facts, run, last):
            yield _without_owner(facts, run, last, None)


def _is_readable(g: GenerationRow, members: Sequence[GenerationMemberRow]) -> bool:
    """Return whether subscriptions and assignments of topics are known: not for Streams, Connect or share groups."""
    return (
        g["group_type"] == GroupType.CONSUMER
        and g["group_protocol"] in (GroupProtocol.CLASSIC, GroupProtocol.CONSUMER)
        and bool(members)
        and all(m["assigned"] is not None for m in members)
    )


def _is_handed_over(facts: GroupFacts, run: _Unowned, last: GenerationRow) -> bool:
    """Return whether the topic's last owner released it so that another member can take it in the next generation."""
    is_partial = last["rebalance_mode"] in (RebalanceMode.COOPERATIVE, RebalanceMode.INCREMENTAL)
    is_there = run.owner_before in {m["member_id"] for m in facts.of(last)}
    return is_partial and is_there and facts.as_of - (run.first["completed_at"] or 0) < HANDED_OVER_MS


def _without_owner(facts: GroupFacts, run: _Unowned, last: GenerationRow, over_at: int | None) -> GroupFinding:
    members = facts.of(last)
    wanting = unique(name_of(m) for m in members if run.topic in m["subscribed_topics"])
    others = unique(name_of(m) for m in members if run.topic not in m["subscribed_topics"])
    leader = next((m for m in members if m["is_leader"]), None)
    is_blind = leader is not None and run.topic not in leader["subscribed_topics"]
    started_at, last_at = run.first["completed_at"] or run.first["joined_at"], last["completed_at"] or last["joined_at"]
    had = "It had an owner before." if run.owner_before is not None else "It had no owner earlier in the window either."
    parts = [
        (
            f"Topic {run.topic}: {count(len(wanting), 'member')} ({with_repeats(wanting)}) subscribed to it, and "
            f"none was assigned any of its partitions in {_lately(run.times)}. {had}"
        )
    ]
    if others:
        parts.append(f"{count(len(others), 'other member')} ({with_repeats(others)}) did not subscribe to it.")
    if is_blind and leader is not None:
        parts.append(
            f"The leader, {name_of(leader)}, assigned the partitions and did not subscribe to the topic itself."
        )
    return GroupFinding(
        pattern=Pattern.TOPIC_WITHOUT_OWNER,
        subject=run.topic,
        started_at=started_at,
        last_at=over_at or last_at,
        ended_at=over_at,
        times=run.times,
        instances=[*wanting, *others],
        evidence=Evidence.OBSERVED,
        explanation=" ".join(parts),
        action=_remedy(run.topic, is_blind=is_blind, is_shared=bool(others), had_owner=run.owner_before is not None),
    )


def _lately(number: int) -> str:
    return "the last completed generation" if number == 1 else f"{number:,} completed generations in a row"


def _remedy(topic: str, *, is_blind: bool, is_shared: bool, had_owner: bool) -> str:
    parts = []
    if is_shared:
        parts.append("If the members are different applications, give each its own group id.")
    if is_blind:
        parts.append(
            "Otherwise give all members the same subscription: some libraries (kafkajs, ruby-kafka) assign only topics "
            "to which the leader subscribes."
        )
    if not had_owner:
        parts.append(f"Check that {topic} exists, has partitions, and that the members may describe and read it.")
    elif not is_shared:
        parts.append(f"Check that {topic} still exists, and that the leader may describe it; then restart the leader.")
    return " ".join(parts)


def group_id_shared(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield a group whose members form applications that have no subscribed topic in common, beyond a deploy."""
    mixed: list[GenerationRow] = []
    for g in facts.completed:
        sides = _sides(facts.of(g)) if _is_readable(g, facts.of(g)) else ()
        if len(sides) < 2:
            if facts.of(g):
                mixed = []
            continue
        mixed.append(g)
    if not mixed or not facts.is_current(mixed[-1]):
        return
    sides = _sides(facts.of(mixed[-1]))
    named = [unique(name_of(m) for m in side) for side in sides]
    is_lasting = facts.as_of - (mixed[0]["completed_at"] or 0) > DEPLOYED_MS
    stems = [{prefix(m["client_id"] or "") for m in side} for side in sides]
    if not is_lasting and (stems[0] & stems[1] or "" in stems[0] | stems[1]):
        return
    by_side = "; ".join(
        f"{with_repeats(names)} to {with_repeats(sorted({t for m in side for t in m['subscribed_topics']}))}"
        for names, side in zip(named, sides, strict=True)
    )
    lasted = facts.as_of - (mixed[0]["completed_at"] or 0)
    how_long = f" for at least {duration(lasted)}" if lasted else ""
    yield GroupFinding(
        pattern=Pattern.GROUP_ID_SHARED,
        started_at=mixed[0]["completed_at"] or mixed[0]["joined_at"],
        last_at=mixed[-1]["completed_at"] or mixed[-1]["joined_at"],
        ended_at=None,
        times=len(mixed),
        instances=[name for names in reversed(named) for name in names],
        evidence=Evidence.INFERRED,
        explanation=(
            f"In {count(len(mixed), 'completed generation')}{how_long}, members with one group id subscribed to "
            f"different topics: {by_side}. The subscriptions are recorded; that these are different applications is "
            "inferred."
        ),
        action=(
            "Give each application its own group id. Until then, each restart of one stops the others too, and a "
            "leader that does not know a topic may leave it without an owner."
        ),
    )


def _sides(members: Sequence[GenerationMemberRow]) -> list[list[GenerationMemberRow]]:
    """Return the members by connected subscriptions, the largest side first; sides have no topic in common."""
    sides: list[tuple[set[str], list[GenerationMemberRow]]] = []
    for m in members:
        topics, mine = set(m["subscribed_topics"]), [m]
        if not topics:
            continue
        for side in [s for s in sides if s[0] & topics]:
            sides.remove(side)
            topics |= side[0]
            mine = [*side[1], *mine]
        sides.append((topics, mine))
    return sorted((side for _, side in sides), key=lambda side: (-len(side), side[0]["member_id"]))
