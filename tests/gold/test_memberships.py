"""Memberships read from generations and from events alone: two readings of one history, tracked as the same instances."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.gold.event_memberships import MembershipRefs, membership_refs
from pipelines.gold.instance_tracker import Instance, Membership, instances, is_same_process
from pipelines.gold.memberships import tracked
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS
from schemas.states import GroupEventKind
from schemas.thresholds import PAUSED_MS, RESTART_MS
from tests.gold.simulated import HOUR, MINUTE, SECOND, START, group


def silver_of(one) -> dict[str, list[dict[str, Any]]]:
    one.rows()
    rows = {GENERATIONS: one.generations, GENERATION_MEMBERS: one.members, GROUP_EVENTS: one.events}
    return {table.name: [dict.fromkeys(table.names) | row for row in mine] for table, mine in rows.items()}


def from_events(silver) -> MembershipRefs:
    """All events, each with its generation, in the order of time."""
    generations = {g["generation_id"]: g for g in silver["generations"]}
    events = sorted(silver["group_events"], key=lambda e: (e["event_at"], e["kind"] == "joined"))
    return membership_refs([(e, generations.get(e["generation_id"])) for e in events])


def members(found: list[Instance]) -> set[tuple[str, ...]]:
    return {tuple(one.member_id for one in instance.memberships) for instance in found}


def of_turns(found: MembershipRefs) -> list[Instance]:
    return list({id(t.instance): t.instance for t in (*found.begun.values(), *found.ended.values())}.values())


@pytest.mark.parametrize("kind", ["eager", "cooperative", "static", "kip848", "streams", "connect"])
@pytest.mark.parametrize("killed", [False, True])
def test_generations_and_events_tell_of_the_same_instances(kind, killed) -> None:
    orders = group(kind=kind)
    orders.deploy(START, pause_ms=20 * SECOND, away_ms=12 * SECOND)
    for ref in range(4):
        orders.restart(START + 10 * MINUTE + ref * 2 * MINUTE, 1, 10 * SECOND, killed=killed)
    silver = silver_of(orders)
    found = tracked(silver)
    assert len(found) == len(orders.instances)
    assert members(found) == members(of_turns(from_events(silver)))


def test_a_fenced_member_is_gone_though_it_comes_back_under_its_id() -> None:
    orders = group(kind="kip848")
    orders.do(START, "cut", 1, 2 * SECOND)
    silver = silver_of(orders)
    (fenced,) = [e for e in silver["group_events"] if e["kind"] == "session_expired"]
    fenced["kind"] = "fenced"
    for found in (tracked(silver), of_turns(from_events(silver))):
        (mine,) = [i for i in found if len(i.memberships) > 1]
        before, following = mine.memberships
        assert (before.departure_kind, before.gone_at) == (GroupEventKind.FENCED, fenced["event_at"])
        assert before.member_id == following.member_id == fenced["member_id"]


def test_a_process_that_was_replaced_before_is_only_refused() -> None:
    orders = group(kind="static")
    orders.restart(START, 1, 10 * SECOND, killed=True)
    silver = silver_of(orders)
    (returned,) = [e for e in silver["group_events"] if e["kind"] == "static_returned"]
    late = returned | {"kind": "fenced", "member_id": "m1", "event_at": returned["event_at"] + SECOND}
    before = members(of_turns(from_events(silver)))
    silver["group_events"].append(late)
    assert members(of_turns(from_events(silver))) == before


def member(client: str, arrived: int, gone: int | None = None, *, host: str = "/10.0.0.1") -> Membership:
    return Membership(
        member_id=f"{client}-{arrived}", group_instance_id=None, client_id=client, client_host=host,
        arrived_at=arrived, stopped_at=gone, gone_at=gone, departure_kind=GroupEventKind.SESSION_EXPIRED,
    )  # fmt: skip


def test_a_client_id_that_is_made_up_at_each_start_is_recognised_by_its_host() -> None:
    one, two = member("orders-0b8e4a7f", 1, 10), member("orders-7c19d2e3", 20)
    assert [[one, two]] == [i.memberships for i in instances([one, two])]
    numbered = [member("orders-1", 1, 10), member("orders-2", 20)]
    assert len(instances(numbered)) == 2, "a number is a name that stays"
    elsewhere = [one, member("orders-7c19d2e3", 20, host="/10.0.0.2")]
    assert len(instances(elsewhere)) == 2


def test_instances_that_ended_longer_ago_than_a_reader_looks_back_are_not_continued() -> None:
    before, following = member("a", 1, 10), member("a", 10 + RESTART_MS)
    assert len(instances([before, following])) == 1
    assert len(instances([before, following], within_ms=RESTART_MS)) == 2
    assert len(instances([before, member("a", 9 + RESTART_MS)], within_ms=RESTART_MS)) == 1


def test_a_process_that_is_back_at_once_where_it_was_is_the_same() -> None:
    before = member("a", 1, HOUR)
    assert is_same_process(before, member("a", HOUR + PAUSED_MS))
    assert not is_same_process(before, member("a", HOUR + PAUSED_MS + 1))
    assert not is_same_process(before, member("a", HOUR - 1)), "the next one was there before it was missed"
    assert not is_same_process(before, member("a", HOUR + 1, host="/10.0.0.2"))
