"""A healthy group shows no pattern: deploys, restarts, scaling, follow-ups, and what merely resembles a pattern."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.gold.memberships import number
from pipelines.gold.patterns.group_patterns import pattern_rows
from pipelines.gold.window import window
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS
from testing.simulation.simulated_days import Cluster
from testing.simulation.simulated_group import Simulated
from testing.warehouses.rebuilding import batches, silver_of
from tests.gold.diagnosis.diagnosed_group import Group
from tests.gold.diagnosis.test_any_history import STEPS, played
from tests.gold.histories import START, EagerGroup
from tests.gold.patterns import pattern_histories as lives
from tests.gold.patterns.pattern_histories import HOUR, LOG, MINUTE, SECOND, Life, of
from tests.silver.handmade import generation, worker, workers
from tests.whole_rows import whole

RECORDED = {
    "connect": {("mailer-writer-connect", "connect_delay")},
    "eager_churn": set(),
    "migration": set(),
    "outage": set(),
    "reassignment": set(),
    "rolling_restart": set(),
    "share_registry": set(),
    "storms": {("receipt-writer", "poll_timeouts")},
    "streams": set(),
}
"""What the scripts did: a worker that returned too late and one that did not; a member that polled too late six
times. The callback that sleeps 2.5 s in `eager_churn` is too short for a pattern: a client may wait as long for a fetch. All else is healthy, or an accident that happened once."""

ONLY_LOGGED = {"poll_timeouts"}


@pytest.mark.parametrize("sources", ["offsets,log", "offsets"])
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_lives_show_what_the_script_did_and_nothing_else(name: str, sources: str) -> None:
    rows = silver_of(batches(name, sources=sources), name)
    found = set()
    for group in {g["group_id"] for g in rows["generations"]}:
        mine = {table: [r for r in of_table if r["group_id"] == group] for table, of_table in rows.items()}
        found |= {(group, row["pattern"]) for row in pattern_rows(window(mine, 0, 1 << 60), 0)}
    expected = RECORDED[name]
    if sources == "offsets":
        expected = {each for each in expected if each[1] not in ONLY_LOGGED}
    assert expected == found


@pytest.mark.parametrize("seed", range(2))
def test_simulated_weeks_of_ordinary_operation_show_only_who_never_closes_and_who_polls_late(seed: int) -> None:
    """Deploys of all kinds, rollbacks, autoscaling, nightly jobs, single accidents: by name, pod, or one client id."""
    cluster = Cluster(seed, groups=80, days=7)
    for group in cluster.groups:
        group.with_members = True
    cluster.calm()
    rude = 0
    for group in cluster.groups:
        found = {row["pattern"] for row in pattern_rows(window(simulated(group), 0, 1 << 60), 0)}
        leaves = group.is_polite or group.kind in ("static", "streams", "connect")
        rude += "never_closed" in found
        assert found <= ({"poll_timeouts"} if leaves else {"poll_timeouts", "never_closed"}), group.group_id
    assert rude > 2


def simulated(group: Simulated) -> dict[str, list[Any]]:
    generations, events = group.rows()
    made = [whole(g | {"outcome": "empty" if g["is_empty"] else "completed"}, GENERATIONS) for g in generations]
    members = [whole(row, GENERATION_MEMBERS) for row in group.members]
    described = [whole(row, GROUP_EVENTS) for row in events]
    return {"generations": made, "generation_members": members, "group_events": described, "stalls": []}


def test_a_group_that_is_mixed_for_hours_is_half_migrated() -> None:
    """The recorded upgrade, as if it had stopped half-way and the group had rebalanced once more three hours later."""
    rows = silver_of(batches("migration"), "migration")
    mine = {table: [r for r in found if r["group_id"] == "mig-up"] for table, found in rows.items()}
    classic = {e["member_id"] for e in mine["group_events"] if e["detail"] == "with the classic protocol"}
    of_generation: dict[Any, set[str]] = {}
    for member in mine["generation_members"]:
        of_generation.setdefault(number(member), set()).add(member["member_id"])
    mixed = [g for g in mine["generations"] if _is_mixed(of_generation.get(number(g), set()), classic, g)]
    cut = {**window(mine, 0, mixed[-1]["joined_at"] + 1)}
    assert "migration_incomplete" not in {row["pattern"] for row in pattern_rows(cut, 0)}
    later = {"generation_id": mixed[-1]["generation_id"] + 1, "joined_at": mixed[-1]["joined_at"] + 3 * HOUR}
    again = [dict(m) | later for m in cut["generation_members"] if number(m) == number(mixed[-1])]
    cut["generations"] = [*cut["generations"], mixed[-1] | later | {"completed_at": later["joined_at"]}]
    cut["generation_members"] = [*cut["generation_members"], *again]
    found = {row["pattern"]: row for row in pattern_rows(cut, 0)}
    assert "INCONSISTENT_GROUP_PROTOCOL" in found["migration_incomplete"]["explanation"]
    assert found["migration_incomplete"]["ended_at"] is None


def _is_mixed(here: set[str], classic: set[str], g: Any) -> bool:
    return g["group_protocol"] == "consumer" and bool(here & classic) and bool(here - classic)


def of_group(group: EagerGroup) -> set[str]:
    return {row["pattern"] for row in pattern_rows(window(group.silver(), 0, 1 << 62), 0)}


def test_rolling_restarts_scaling_and_a_crash_are_no_patterns() -> None:
    rolled, scaled, crashed = EagerGroup(), EagerGroup(), Group()
    for turn in range(3):
        for index in range(3):
            rolled.restarts(index, (turn * 10 + index) * MINUTE, 5_000)
    for turn in range(6):
        scaled.returns(3 + turn, (turn * 2 + 1) * MINUTE)
        scaled.leaves(3 + turn, (turn * 2 + 2) * MINUTE)
    crashed.naps(1, 5 * MINUTE)
    assert set() == of_group(rolled) | of_group(scaled) | of_group(crashed)


def cooperative_move() -> Life:
    """The only partition of `audit` is released by a for b; the follow-up has not come yet."""
    both = ["audit", "orders"]
    a = of("a", topics=both, gives={"orders": [0], "audit": [0]})
    kept = a | {"assignment": {"partitions": {"orders": [0]}, "userData": None}}
    kept["subscription"] = kept["subscription"] | {"ownedPartitions": {"orders": [0], "audit": [0]}, "generationId": 1}
    b = of("b", topics=both, gives={})
    return Life(
        records=[
            generation(1, 0, [a], protocol="cooperative-sticky"),
            generation(2, MINUTE, [kept, b], protocol="cooperative-sticky"),
        ]
    )


def owner_after_a_while() -> Life:
    """A topic that is created a minute after its first subscriber came."""
    without, with_it = of("a", topics=["audit", "orders"]), of("a", topics=["audit", "orders"], gives={"orders": [0]})
    with_it["assignment"] = {"partitions": {"orders": [0], "audit": [0]}, "userData": None}
    return Life(records=[generation(1, 0, [without]), generation(2, MINUTE, [with_it])])


def deploy_with_another_topic() -> Life:
    """The new version reads another topic, member by member, within minutes; the client ids stay the same."""

    def part(at: int, number: int, done: int):
        new, old = (
            [of(f"new{i}", f"app-{i}", topics=["audit"], gives={"audit": [i]}) for i in range(done)],
            [of(f"old{i}", f"app-{i}", gives={"orders": [i]}) for i in range(done, 3)],
        )
        return generation(number, at, [*new, *old])

    return Life(records=[part(turn * MINUTE, turn + 1, turn) for turn in range(3)])


def worker_that_returns() -> Life:
    """w2 is back after 20 s of the delay of five minutes."""
    w1, w2 = worker("w1", ran={}, given={"sink": [0]}), worker("w2", ran={}, given={"sink": [1]})
    return Life(
        records=[
            workers(1, 0, w1, w2),
            workers(2, MINUTE, worker("w1", ran={"sink": [0]}, delay=5 * MINUTE)),
            workers(
                3, MINUTE + 20 * SECOND, worker("w1", ran={"sink": [0]}), worker("w2b", ran={}, given={"sink": [1]})
            ),
        ]
    )


def static_restarts() -> Life:
    """One static instance restarts on another host each time, as pods do."""
    life = Life()
    for turn in range(6):
        now = of(f"p{turn}", "app", f"/10.0.0.{turn}", groupInstanceId="orders-0")
        life.records.append(generation(1, 0, [now]) | {"at": lives.START + turn * 30 * SECOND + 5})
    return life


def registries_restart() -> Life:
    """Three registries restart one after another; the leader changes, and is away for some seconds."""
    return Life(
        records=[
            lives.registries(1, 0, "r0", "r0", "r1", "r2"),
            lives.registries(2, MINUTE, "r1", "r1", "r2"),
            lives.registries(3, MINUTE + 5 * SECOND, "r0", "r0", "r1", "r2"),
            lives.registries(4, 2 * MINUTE, "r0", "r0", "r2"),
            lives.registries(5, 2 * MINUTE + 5 * SECOND, "r0", "r0", "r1", "r2"),
        ]
    )


def closed_politely() -> Life:
    return lives.never_closed(is_polite=True)


def metadata_changes() -> Life:
    """The leader rejoins four times in a row, as after new topics that it does not read."""
    pair = [of("a", gives={"orders": [0]}), of("b", gives={"orders": [1]})]
    return Life(records=[generation(n, n * 5 * MINUTE, pair) for n in range(1, 5)])


@pytest.mark.parametrize("sources", ["topic", LOG])
@pytest.mark.parametrize(
    "life",
    [
        cooperative_move,
        owner_after_a_while,
        deploy_with_another_topic,
        worker_that_returns,
        static_restarts,
        registries_restart,
        closed_politely,
        metadata_changes,
    ],
)
def test_what_resembles_a_pattern_is_none(life: Callable[[], Life], sources: str) -> None:
    assert {} == life().found(sources)


def test_a_topic_that_had_no_owner_for_long_is_reported_as_over() -> None:
    life = lives.unowned()
    b = of("b", topics=["audit", "orders"])
    b["assignment"] = {"partitions": {"orders": [0, 1], "audit": [0]}, "userData": None}
    life.records.append(generation(3, HOUR, [b]))
    row = life.found()["topic_without_owner"]
    assert (lives.START + MINUTE + 5, lives.START + HOUR + 5) == (row["started_at"], row["ended_at"])
    assert "audit" == row["subject"]
    assert "It had an owner before." in row["explanation"]
    assert "The leader, a, assigned the partitions and did not subscribe to the topic itself." in row["explanation"]


def test_a_wait_until_just_before_the_poll_interval_says_not_to_raise_it() -> None:
    row = lives.blocked().found()["waiting_for_one"]
    assert "57.4 s (median)" in row["explanation"]
    assert "It joined just before that timeout 3 times" in row["explanation"]
    assert "Do not raise the poll interval (max.poll.interval.ms)" in row["action"]
    assert ["b"] == row["instances"]


@settings(max_examples=30)
@given(STEPS, st.integers(0, 2**16), st.integers(0, 2_000_000))
def test_rows_come_in_any_order_and_have_one_row_per_pattern_and_subject(steps, seed, since) -> None:
    silver = played(steps).silver()
    rows = pattern_rows(silver, START + since)
    assert len({(row["pattern"], row["subject"]) for row in rows}) == len(rows)
    for row in rows:
        assert row["started_at"] <= row["last_at"] <= row["as_of"]
        assert row["ended_at"] is None or row["started_at"] <= row["ended_at"]
    shuffled = {name: Random(seed).sample(found, len(found)) for name, found in silver.items()}
    assert pattern_rows(shuffled, START + since) == rows


@pytest.mark.parametrize(
    ("library", "name"),
    [("java", "max.poll.interval.ms"), ("sarama", "rebalance timeout"), ("unknown", "poll interval")],
)
def test_a_client_without_max_poll_interval_is_not_advised_to_change_it(library: str, name: str) -> None:
    silver = window(lives.blocked().silver(), 0, 1 << 60)
    silver["generation_members"] = [row | {"client_library": library} for row in silver["generation_members"]]
    found = {row["pattern"]: row for row in pattern_rows(silver, 0)}
    assert f"Do not raise the {name}" in found["waiting_for_one"]["action"]
