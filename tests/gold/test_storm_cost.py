"""The cost of a storm as DuckDB sums it equals the sum row by row."""

from __future__ import annotations

from math import fsum
from random import Random

import pytest
from deltalake import write_deltalake

from jobs.gold.storm_facts import facts
from jobs.gold.storm_silver import StormSilver
from jobs.tables.paths import table_path
from pipelines.gold.storms.disturbances import Disturbance
from pipelines.gold.storms.storms import Storm
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, STALLS
from schemas.states import StallCause, StormScope
from tests.gold.simulated import CLUSTER, MINUTE, SECOND, START, table_of

HIT, SPARED = ("a", "b", "c"), "other"


def history(random: Random) -> tuple[list[dict], list[dict]]:
    """Generations of four groups from an hour before the storm on, spans that overlap among them, and their stalls."""
    generations, stalls = [], []
    for group in (*HIT, SPARED):
        joined = START - 60 * MINUTE
        for number in range(1, 60):
            joined += random.randrange(1, 240) * SECOND
            prepared = joined - random.randrange(300) * SECOND
            key = {"group_id": group, "incarnation": number // 40, "generation_id": number}
            described = random.random() < 0.5
            generations.append(
                key
                | {
                    "joined_at": joined,
                    "prepared_at": prepared if described else None,
                    "prepared_at_latest": prepared + SECOND,
                    "completed_at": random.choice((None, joined + random.randrange(60) * SECOND)),
                }
            )
            for index in range(2):
                cause = random.choice((StallCause.EAGER_BARRIER, StallCause.NO_MEMBER))
                ms = random.choice((None, random.randrange(90_000)))
                stalls.append(
                    key
                    | {
                        "name": "t",
                        "index": index,
                        "log_epoch": 0,
                        "stopped_by_offset": number,
                        "cause": cause,
                        "stopped_at_latest": prepared,
                        "stopped_ms_min": ms,
                        "stopped_ms": ms,
                        "stopped_ms_max": None if ms is None else ms + 7,
                    }
                )
    return generations, stalls


def by_hand(generations, stalls, begin: int, end: int) -> tuple[int, float, float, float]:
    """Return the rebalances, the resource-seconds lost, their upper bound, and the share of the time with a rebalance
    in progress.
    """
    mine = [g for g in generations if g["group_id"] in HIT and begin <= g["joined_at"] <= end]
    numbers = {(g["group_id"], g["incarnation"], g["generation_id"]) for g in mine}
    lost = [
        s
        for s in stalls
        if s["group_id"] in HIT
        and s["stopped_ms"] is not None
        and s["cause"] != StallCause.NO_MEMBER
        and ((s["group_id"], s["incarnation"], s["generation_id"]) in numbers or begin <= s["stopped_at_latest"] <= end)
    ]
    seconds = set()
    for g in mine:
        start = g["prepared_at"] if g["prepared_at"] is not None else g["prepared_at_latest"]
        stop = end if g["completed_at"] is None else min(end, g["completed_at"])
        seconds |= {(g["group_id"], ms) for ms in range(max(begin, start), stop, SECOND)}
    return (
        len(mine),
        fsum(sum(s["stopped_ms"] for s in lost if s["group_id"] == g) / 1000 for g in HIT),
        fsum(sum(s["stopped_ms_max"] for s in lost if s["group_id"] == g) / 1000 for g in HIT),
        len(seconds) * SECOND / (end - begin) / len(HIT),
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_sum_is_what_the_rows_say(tmp_path, seed) -> None:
    generations, stalls = history(Random(seed))
    empty = {GENERATION_MEMBERS: [], GROUP_EVENTS: []}
    for table, rows in ({GENERATIONS: generations, STALLS: stalls} | empty).items():
        write_deltalake(table_path(tmp_path, table), table_of(table, rows))
    begin, end = START - 20 * MINUTE, START + 10 * MINUTE
    disturbances = [Disturbance(group_id=g, at=begin, known_at=begin) for g in HIT]
    storm = Storm(
        cluster=CLUSTER, scope=StormScope.GROUP, disturbances=disturbances, detected_at=begin, last_at=end, needed=3,
        window_ms=MINUTE, expected_per_day=1.0, group_ids=set(HIT), first_group=HIT[0],
    )  # fmt: skip
    cost = facts(StormSilver(warehouse=tmp_path), storm).cost
    expected = by_hand(generations, stalls, begin, end)
    assert expected[0] > 0
    assert (cost.rebalances, cost.lost, cost.lost_max) == expected[:3]
    assert cost.lost_min == cost.lost
    assert cost.unstable == pytest.approx(expected[3])
