"""Which rebalances are storms, of simulated and of recorded groups."""

from __future__ import annotations

import pytest

from pipelines.gold.rebalance_causes import rebalance_causes
from pipelines.gold.storms.cluster_storms import cluster_storms
from pipelines.gold.storms.disturbances import Disturbance, disturbances
from pipelines.gold.storms.incremental import StormScan
from pipelines.gold.storms.storm_causes import DiagnosedRebalance, suspected
from pipelines.gold.storms.storms import Storm, group_storms
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS
from schemas.states import DiagnosisCause, StormScope
from testing.simulation.detection import measure
from testing.warehouses.rebuilding import batches, silver_of
from tests.gold.simulated import DAY, HOUR, MINUTE, SECOND, START, group


def disturbed(*groups) -> list[Disturbance]:
    return [s for g in groups for s in disturbances(g.group_id, *g.rows())]


def alone(found, **more) -> list[Storm]:
    return group_storms("kafka", "orders", found, first_seen_at=START - HOUR, **more)


def together(found, groups=20) -> list[Storm]:
    return cluster_storms("kafka", found, [START - HOUR] * groups)


def diagnosed(storm, one) -> list[DiagnosedRebalance]:
    """The causes of the storm's rebalances by the diagnosis of this group."""
    silver = {"generations": one.generations, "generation_members": one.members, "group_events": one.events}
    tables = {table.name: dict.fromkeys(table.names) for table in (GENERATIONS, GENERATION_MEMBERS, GROUP_EVENTS)}
    found = rebalance_causes({name: [tables[name] | row for row in rows] for name, rows in silver.items()})
    causes = (found.cause((s.incarnation, s.generation_id), s.at) for s in storm.disturbances)
    return [DiagnosedRebalance(group_id=one.group_id, cause=cause) for cause in causes if cause is not None]


@pytest.mark.parametrize("kind", ["eager", "cooperative", "static", "kip848", "streams", "connect"])
@pytest.mark.parametrize("is_logged", [True, False])
@pytest.mark.parametrize("is_polite", [True, False])
def test_a_rolling_deploy_that_is_rolled_back_and_tried_again_is_no_storm(kind, is_logged, is_polite) -> None:
    orders = group(kind=kind, is_logged=is_logged, is_polite=is_polite)
    for ref in range(3):
        orders.deploy(START + ref * 12 * MINUTE, pause_ms=20 * SECOND, away_ms=12 * SECOND)
    assert alone(disturbed(orders)) == []


@pytest.mark.parametrize("name", ["{}", "{}#"])
def test_pods_that_are_replaced_under_other_names_are_no_storm(name) -> None:
    orders = group(instance={"renames": True})
    for index, instance in enumerate(orders.instances):
        instance.name = name.format(f"orders-{index}")
    for ref in range(3):
        orders.deploy(START + ref * 12 * MINUTE, pause_ms=20 * SECOND, away_ms=12 * SECOND)
    assert alone(disturbed(orders)) == []


def test_scaling_out_and_in_all_day_is_no_storm() -> None:
    orders = group(size=6)
    for ref in range(40):
        at = START + ref * 15 * MINUTE
        for index in (4, 5):
            orders.do(at + index * 300, "stop", index, 0)
            orders.do(at + 7 * MINUTE + index * 300, "start", index)
    assert alone(disturbed(orders)) == []


def test_the_third_poll_that_took_too_long_makes_a_storm_that_ends_after_calm() -> None:
    orders = group()
    for ref in range(5):
        orders.do(START + ref * 7 * MINUTE, "poll_timeout", 1, 5 * SECOND)
    [storm] = alone(disturbed(orders))
    assert storm.started_at == START
    assert 14 * MINUTE <= storm.detected_at - START < 14 * MINUTE + 4 * SECOND
    assert len(storm.disturbances) == 5
    assert suspected(storm, diagnosed(storm, orders)) == (DiagnosisCause.POLL_TIMEOUT, 1.0)
    assert storm.is_open(storm.last_at + 30 * MINUTE)
    assert not storm.is_open(storm.last_at + 31 * MINUTE)


def test_one_process_that_cannot_stay_is_a_storm_however_it_goes_and_whatever_its_name() -> None:
    for kind, killed in (("eager", False), ("eager", True), ("static", True), ("streams", True), ("kip848", False)):
        for name in ("orders-1", "orders#1"):
            orders = group(kind=kind)
            orders.instances[1].name, orders.instances[1].renames = name, "#" in name
            for ref in range(8):
                orders.restart(START + ref * 2 * MINUTE, 1, 10 * SECOND, killed=killed)
            assert len(alone(disturbed(orders))) == 1, (kind, killed, name)


def test_a_living_process_that_was_given_up_is_never_explained() -> None:
    orders = group()
    for ref in range(4):
        orders.do(START + ref * 2 * MINUTE, "cut", ref, SECOND)
    [storm] = alone(disturbed(orders))
    assert suspected(storm, diagnosed(storm, orders))[0] == DiagnosisCause.SESSION_EXPIRY


def test_what_never_ends_is_one_storm() -> None:
    orders = group()
    for ref in range(3 * 24 * 6):
        orders.do(START + ref * 10 * MINUTE, "poll_timeout", 1, 5 * SECOND)
    [storm] = alone(disturbed(orders))
    assert storm.last_at - storm.started_at > 3 * DAY - 11 * MINUTE


def test_what_happens_to_a_group_every_night_is_no_storm_for_ever() -> None:
    orders = group()
    for night in range(7):
        for ref in range(4):
            orders.do(START + night * DAY + ref * 5 * MINUTE, "poll_timeout", 1, 5 * SECOND)
    assert len(alone(disturbed(orders))) == 3


def test_groups_that_lose_their_coordinator_together_are_one_storm_of_the_fleet() -> None:
    hit = [group(f"orders-{number}") for number in range(6)]
    for number, one in enumerate(hit):
        one.do(START, "load", 2)
        for index in range(4):
            one.do(START + 5 * SECOND + number * SECOND, "cut", index, 2 * SECOND)
    found = disturbed(*hit)
    [storm] = together(found)
    assert storm.group_ids == {one.group_id for one in hit}
    assert (storm.scope, storm.detected_at - START < 15 * SECOND) == (StormScope.FLEET, True)


def test_applications_that_are_deployed_at_once_are_no_storm_of_the_fleet() -> None:
    apps = [group(f"app-{number}", kind, 3) for number, kind in enumerate(["streams"] * 4 + ["eager", "kip848"])]
    for app in apps:
        app.deploy(START, pause_ms=40 * SECOND, away_ms=15 * SECOND)
    found = disturbed(*apps)
    assert together(found) == []
    assert [s for s in found if not s.is_explained] == []


def test_a_fleet_storm_leaves_nothing_for_its_groups_to_page() -> None:
    hit = [group(f"orders-{number}") for number in range(5)]
    for one in hit:
        for ref in range(6):
            one.do(START + ref * 2 * MINUTE, "cut", ref % 4, SECOND)
    found = disturbed(*hit)
    [storm] = together(found)
    span = [(storm.started_at, storm.last_at)]
    mine = [s for s in found if s.group_id == "orders-0"]
    assert group_storms("kafka", "orders-0", mine, first_seen_at=START - HOUR, fleet_spans=span) == []
    assert len(group_storms("kafka", "orders-0", mine, first_seen_at=START - HOUR)) == 1


@pytest.mark.parametrize(
    "name", ["rolling_restart", "connect", "streams", "migration", "reassignment", "share_registry"]
)
@pytest.mark.parametrize("sources", ["offsets,log", "offsets"])
def test_recorded_restarts_are_no_storm(name, sources) -> None:
    assert recorded(name, sources) == []


def test_four_recorded_groups_with_an_accident_or_two_each_are_no_storm() -> None:
    assert recorded("eager_churn", "offsets,log") == []


@pytest.mark.parametrize("sources", ["offsets,log", "offsets"])
def test_a_recorded_crash_loop_and_late_polls_are_storms_and_the_deploy_beside_them_is_none(sources) -> None:
    found = {storm.first_group: storm for storm in recorded("storms", sources)}
    assert sorted(found) == ["label-printer", "receipt-writer"]
    assert {s.started_by for s in found["label-printer"].disturbances} == {"label-printer-1"}
    assert {s.started_by for s in found["receipt-writer"].disturbances} == {"receipt-writer-0"}
    assert found["receipt-writer"].detected_at - found["receipt-writer"].started_at < MINUTE


def recorded(name: str, sources: str) -> list[Storm]:
    rows = silver_of(batches(name, sources=sources), name)
    seen = {row["group_id"]: row["first_seen_at"] for row in rows["groups"]}
    mine = {
        one: disturbances(one, *([r for r in rows[t] if r["group_id"] == one] for t in ("generations", "group_events")))
        for one in seen
    }
    everything = [s for found in mine.values() for s in found]
    storms = cluster_storms("kafka", everything, seen.values())
    return storms + [s for one in seen for s in group_storms("kafka", one, mine[one], first_seen_at=seen[one])]


def test_simulated_storms_are_found_and_ordinary_days_page_nobody() -> None:
    figures = measure(calm_days=600, storms=24, groups=60, days=2, seed=7)
    assert figures.found >= 0.95 * figures.storms, figures.missed
    assert len(figures.false) <= 1


def test_the_usual_rate_is_of_a_week_also_if_no_group_of_the_cluster_ever_had_a_storm() -> None:
    orders = group()
    for day in range(7):
        for ref in range(5):
            orders.do(START + day * DAY + ref * 3 * HOUR, "poll_timeout", 1, 5 * SECOND)
    evening = START + 6 * DAY + 20 * HOUR
    for ref in range(3):
        orders.do(evening + ref * 7 * MINUTE, "poll_timeout", 1, 5 * SECOND)
    every = disturbed(orders)

    def scanned(since: int, found: list[Disturbance]) -> tuple[StormScan, list[Storm]]:
        scan = StormScan(cluster="kafka", stored=[], since_ms=since, first_seen_at={orders.group_id: START})
        scan.find_cluster_storms([s for s in found if s.at >= scan.lately])
        return scan, scan.storms({orders.group_id: found})

    first, storms = scanned(evening - HOUR, [s for s in every if s.at < evening])
    assert storms == []
    assert scanned(evening - HOUR, every)[1] == [], "three at such a rate are chance"
    kept = [s for s in every if s.at >= first.kept]
    assert scanned(evening - HOUR, kept)[1] == [], "the check before kept the whole week"
