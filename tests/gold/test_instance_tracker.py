"""Which member ids are taken for the same instance."""

from __future__ import annotations

import pytest

from pipelines.gold.instance_tracker import Membership, instances
from testing.processor_time import within


def life(
    client: str, arrived: int, stopped: int | None = None, *, host: str = "/10.0.0.1", instance: str | None = None
) -> Membership:
    return Membership(
        member_id=f"{client}-{host}-{arrived}",
        group_instance_id=instance,
        client_id=client,
        client_host=host,
        topics=("orders",),
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        arrived_at=arrived,
        stopped_at=stopped,
        gone_at=stopped,
    )


def chains(*lives: Membership) -> list[list[int]]:
    return [[each.arrived_at for each in found.memberships] for found in instances(lives)]


def test_a_member_comes_back_under_its_client_id() -> None:
    assert chains(life("a", 1, 10), life("b", 2, 12), life("b", 20), life("a", 21)) == [[1, 21], [2, 20]]


def test_the_host_decides_between_members_of_one_client_id() -> None:
    one, two = {"host": "/10.0.0.1"}, {"host": "/10.0.0.2"}
    lives = life("c", 1, 10, **one), life("c", 2, 11, **two), life("c", 20, **one), life("c", 21, **two)
    assert chains(*lives) == [[1, 20], [2, 21]]


def test_an_instance_id_outlasts_everything_else_and_two_are_never_one() -> None:
    assert chains(life("a", 1, 10, instance="x"), life("z", 20, host="/10.9.9.9", instance="x")) == [[1, 20]]
    assert chains(life("a", 1, 10, instance="x"), life("a", 20, instance="y")) == [[1], [20]]


def test_a_dynamic_member_may_come_back_static() -> None:
    assert chains(life("a", 1, 10), life("a", 20, instance="a-0")) == [[1, 20]]


def test_a_pod_of_the_same_deployment_takes_the_place_of_the_one_that_went() -> None:
    lives = life("shop-7d9f8b6c5d-x2x4z", 1, 10), life("shop-7d9f8b6c5d-b5hgt", 20), life("cart-66bd98c7cf-q9wvr", 21)
    assert chains(*lives) == [[1, 20], [21]]
    assert [found.is_renamed for found in instances(lives)] == [True, False]


@pytest.mark.parametrize("stopped", [None, 30])
def test_who_comes_while_the_other_still_works_is_somebody_else(stopped) -> None:
    assert chains(life("a", 1, stopped), life("a", 20)) == [[1], [20]]


def test_a_killed_process_may_be_back_before_its_death_is_noticed() -> None:
    killed = life("a", 1, 10)
    object.__setattr__(killed, "gone_at", 55)
    assert chains(killed, life("a", 20)) == [[1, 20]]


def test_a_thousand_fresh_client_ids_take_time_in_proportion() -> None:
    lives = [life(f"c{i}", i, i + 1) for i in range(4_000)]
    # A quadratic search takes six seconds.
    assert 4_000 == len(within(1.5, lambda: instances(lives)))


def test_long_client_ids_take_time_in_proportion() -> None:
    # A quadratic search takes seconds.
    assert len(within(0.5, lambda: instances([life("a" * 32_000, 1, 2), life("a" * 31_999, 3)]))) == 2
