"""Each pattern of one group, by the topic alone, with the log and with polls: is it named, by what evidence, and does it
alert?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from pipelines.gold.alerts.alert import AlertLimits, Facts
from pipelines.gold.alerts.freshness import Freshness
from pipelines.gold.alerts.rules import evaluate
from pipelines.gold.patterns.group_patterns import pattern_rows
from schemas.rows import PatternOfGroup
from schemas.states import AlertName
from tests.gold.histories import START, EagerGroup
from tests.gold.patterns import pattern_histories as lives
from tests.gold.patterns.pattern_histories import ALONE, HOUR, LOG, MINUTE, POLL, SECOND, Life
from tests.silver.handmade import GROUP

LIMITS = AlertLimits(stuck_ms=6 * MINUTE, stale_ms=90_000, availability=0.999)
OBSERVED, INFERRED, NOT_NAMED = "observed", "inferred", None


class Cells(NamedTuple):
    """A history, its pattern, the evidence by source (None: not named), and the alert."""

    life: Callable[[], Life]
    pattern: str
    alone: str | None
    log: str | None
    poll: str | None
    alert: AlertName | None = None


MATRIX = {
    "same plan again": Cells(lives.rejoin_loop, "rejoin_loop", OBSERVED, OBSERVED, OBSERVED),
    "expelling each other": Cells(lives.expelling, "rejoin_loop", OBSERVED, OBSERVED, OBSERVED),
    "blocked in a callback": Cells(lives.blocked, "waiting_for_one", NOT_NAMED, INFERRED, NOT_NAMED),
    "no owner": Cells(
        lives.unowned, "topic_without_owner", OBSERVED, OBSERVED, OBSERVED, AlertName.TOPIC_WITHOUT_OWNER
    ),
    "two applications": Cells(lives.shared, "group_id_shared", INFERRED, INFERRED, INFERRED),
    "lost worker": Cells(lives.connect_delay, "connect_delay", OBSERVED, OBSERVED, OBSERVED),
    "never closed": Cells(lives.never_closed, "never_closed", INFERRED, OBSERVED, INFERRED),
    "one id on two hosts": Cells(lives.used_twice, "instance_id_used_twice", INFERRED, OBSERVED, INFERRED),
    "ids of one start": Cells(lives.not_kept, "instance_id_not_kept", INFERRED, INFERRED, INFERRED),
    "late polls": Cells(lives.poll_timeouts, "poll_timeouts", NOT_NAMED, OBSERVED, NOT_NAMED),
    "refused conversion": Cells(lives.refused, "migration_incomplete", NOT_NAMED, OBSERVED, NOT_NAMED),
    "two assignors": Cells(lives.alternating, "migration_incomplete", OBSERVED, OBSERVED, OBSERVED),
    "no registry": Cells(lives.without_leader, "registry_without_leader", OBSERVED, OBSERVED, OBSERVED),
    "registries in turns": Cells(lives.elected_again, "registry_without_leader", OBSERVED, OBSERVED, OBSERVED),
}


def alerts(found: Mapping[str, PatternOfGroup]) -> set[AlertName]:
    """Return the alerts that would be raised an hour later if nothing else happened."""
    rows = [
        {"group_id": GROUP, "is_newest": True, "had_owner": True} | row
        for row in found.values()
        if row["pattern"] == "topic_without_owner" and row["ended_at"] is None
    ]
    now = max((row["last_at"] for row in rows), default=0) + 60 * MINUTE
    fresh = Freshness(known_until_ms=now, is_fresh=True)
    facts = Facts(cluster="kafka", now_ms=now, freshness=fresh, polled_until_ms=now, unowned=rows)
    return {alert.name for alert in evaluate(facts, LIMITS).alerts}


@pytest.mark.parametrize("sources", [ALONE, LOG, POLL])
@pytest.mark.parametrize("name", MATRIX)
def test_each_pattern_by_each_source(name: str, sources: str) -> None:
    cells = MATRIX[name]
    expected = {ALONE: cells.alone, LOG: cells.log, POLL: cells.poll}[sources]
    found = cells.life().found(sources)
    assert expected == (found[cells.pattern]["evidence"] if cells.pattern in found else NOT_NAMED)
    assert set(found) <= {cells.pattern}, "and nothing else is found"
    named = {cells.alert} if expected is not None and cells.alert is not None else set()
    assert named == alerts(found)
    for row in found.values():
        assert row["explanation"].endswith(".")
        assert row["action"].endswith(".")
        assert row["started_at"] <= row["last_at"] <= row["as_of"]
        assert (sources == LOG) >= ("log" in row["sources"])


def test_a_restart_without_a_leave_costs_what_stopped_with_it_and_no_earlier_rebalance() -> None:
    group = EagerGroup(members=4, partitions=40, callback_ms=20_000)
    for ref in range(4):
        group.leaves(ref, 100_000 + ref * 240_000, how="session_expired", silent_ms=45_000, trigger="session_expired")
        group.returns(ref, 205_000 + ref * 240_000)
    (row,) = pattern_rows(group.silver(), START)
    # Ten partitions wait 45 s for the end of the session and 20.3 s for the others.
    assert "stopped its partitions for 653 partition-seconds on average" in row["explanation"]


def ends(found: Mapping[str, PatternOfGroup], pattern: str) -> tuple[int, int | None, int]:
    """Return the time of the last incident, the time at which the pattern ended, and the number of incidents."""
    row = found[pattern]
    return row["last_at"], row["ended_at"], row["times"]


def test_one_election_a_day_later_does_not_belong_to_the_earlier_ones() -> None:
    life = lives.elected_again()
    last_at, ended_at, number = ends(life.found(), "registry_without_leader")
    assert ended_at is None
    life.records.append(lives.registries(10, 24 * HOUR, "r0", "r0", "r1"))
    assert (last_at, last_at, number) == ends(life.found(), "registry_without_leader")


def test_one_takeover_a_day_later_does_not_belong_to_the_earlier_ones() -> None:
    life = lives.used_twice()
    last_at, ended_at, number = ends(life.found(ALONE), "instance_id_used_twice")
    assert ended_at is None
    life.records += [lives.holds_the_id(turn, 24 * HOUR + turn * 20 * SECOND) for turn in (8, 9)]
    assert (last_at, last_at, number) == ends(life.found(ALONE), "instance_id_used_twice")
