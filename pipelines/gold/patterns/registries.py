"""Schema registries that have no leader, or elect one again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pipelines.gold.patterns.group_facts import GroupFacts, GroupFinding, unique
from pipelines.gold.wording import times
from schemas.rows import GroupEventRow
from schemas.states import Evidence, GroupEventKind, GroupType, Pattern
from schemas.thresholds import FLAP_MS, LOOP
from schemas.written import duration

NO_LEADER, ELECTED = "no registry elected", "elected registry "
"""How silver describes an election."""

SAME_URL = "two registries have the same URL"
LASTED_MS = 30_000
"""Registries that restart together have no leader for as long as one session takes to expire; a shorter time is
normal."""

ELECTIONS = 6
"""Elections within `FLAP_MS` of each other. A rolling restart of three registries causes at most four."""


def registry_without_leader(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield a registry cluster that had no leader, or whose leader changed back and forth."""
    if not any(g["group_type"] == GroupType.SCHEMA_REGISTRY for g in facts.generations):
        return
    elections = [
        e
        for e in facts.events
        if e["kind"] == GroupEventKind.LEADER_CHANGED and (e["detail"] or "").startswith((NO_LEADER, ELECTED))
    ]
    found = _without_leader(facts, elections) or _again_and_again(facts, elections)
    if found is not None:
        yield found


def _without_leader(facts: GroupFacts, elections: Sequence[GroupEventRow]) -> GroupFinding | None:
    """Return the times without a leader: from an election without a result to the next result, or to an empty group."""
    over = [e["event_at"] for e in facts.events if e["kind"] in (GroupEventKind.EMPTY, GroupEventKind.DEAD)]
    over += [e["event_at"] for e in elections if (e["detail"] or "").startswith(ELECTED)]
    spans = [
        (e["event_at"], min((at for at in over if at > e["event_at"]), default=None))
        for e in elections
        if e["detail"] == NO_LEADER
    ]
    long = [(since, until) for since, until in spans if until is None or until - since >= LASTED_MS]
    if not long:
        return None
    is_same = any(SAME_URL in (e["detail"] or "") for e in facts.events)
    since, until = long[-1]
    last_at = until if until is not None else facts.as_of
    why = "Two registries had the same URL, so none was elected." if is_same else "No registry was eligible."
    lasted = (
        f"The last time took {duration(until - since)}." if until is not None else "It has none in the newest record."
    )
    return GroupFinding(
        pattern=Pattern.REGISTRY_WITHOUT_LEADER,
        started_at=long[0][0],
        last_at=last_at,
        ended_at=until,
        times=len(long),
        instances=_members(facts),
        evidence=Evidence.OBSERVED,
        explanation=(
            f"The registries had no leader {times(len(long))}: their assignment names none. {lasted} {why} Without a "
            "leader, no schema can be registered; known schemas are still served."
        ),
        action=(
            "Give each registry its own host name and port (host.name, inter.instance.listener.name)."
            if is_same
            else "Set leader.eligibility=true on at least one registry, and check that it joins this group "
            "(schema.registry.group.id)."
        ),
    )


def _again_and_again(facts: GroupFacts, elections: Sequence[GroupEventRow]) -> GroupFinding | None:
    runs: list[list[GroupEventRow]] = []
    for e in elections:
        if not runs or e["event_at"] - runs[-1][-1]["event_at"] > FLAP_MS:
            runs.append([])
        runs[-1].append(e)
    run = next((each for each in reversed(runs) if len(each) >= ELECTIONS and max(_won(each).values()) >= LOOP), None)
    if run is None:
        return None
    last_at = run[-1]["event_at"]
    urls = [url for url, _ in _won(run).most_common()]
    return GroupFinding(
        pattern=Pattern.REGISTRY_WITHOUT_LEADER,
        started_at=run[0]["event_at"],
        last_at=last_at,
        ended_at=facts.ended(last_at, FLAP_MS),
        times=len(run),
        instances=unique([*(e["client_id"] or "" for e in run if e["client_id"]), *urls]),
        evidence=Evidence.OBSERVED,
        explanation=(
            f"A leader was elected {times(len(run))} within {duration(last_at - run[0]['event_at'])}: "
            f"{', '.join(urls[:4])}. Each election interrupts the registration of schemas."
        ),
        action=(
            "Find out why registries leave the group: their logs show rejoins, lost connections and long garbage "
            "collections. Two clusters with one schema.registry.group.id and topic elect one leader between them: "
            "separate them."
        ),
    )


def _won(elections: Sequence[GroupEventRow]) -> Counter[str]:
    """Return how often each registry was elected."""
    return Counter((e["detail"] or "").removeprefix(ELECTED) for e in elections)


def _members(facts: GroupFacts) -> list[str]:
    members = facts.of(facts.generations[-1])
    return unique(f"{m['client_id'] or m['member_id']} ({m['client_host'] or ''})" for m in members)
