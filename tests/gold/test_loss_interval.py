"""The 90 % interval of a total: partitions of one member's stop add up, different stops add up as squares."""

from __future__ import annotations

import duckdb
import pytest

from pipelines.gold.churn import is_lost
from pipelines.gold.health import health_rows
from schemas.loss_interval import OF_STOPS, OF_SUM, OF_SUMS, ONE_STOP, SHARE, loss, of_row, summed
from schemas.thresholds import HOUR_MS
from testing.warehouses.rebuilding import batches, silver_of, truth

NAMES = ("eager_churn", "rolling_restart", "reassignment")
SLACK_MS = 5
"""A client's callback and the coordinator's record are not at the same millisecond."""


def test_partitions_of_one_stop_have_the_same_error_and_stops_have_their_own() -> None:
    one = loss([("a", 0, 100, 300), ("a", 0, 100, 300)])
    assert one == pytest.approx((200, 200 - SHARE * 200, 200 + SHARE * 400))
    two = loss([("a", 0, 100, 300), ("b", 0, 100, 300)])
    assert two == pytest.approx((200, 200 - SHARE * 100 * 2**0.5, 200 + SHARE * 200 * 2**0.5))


def test_sums_of_parts_have_the_interval_of_the_whole() -> None:
    stops = [(n % 5, 10 * n, 20 * n, 50 * n) for n in range(30)]
    parts = [loss(s for s in stops if s[0] == key) for key in range(5)]
    assert summed(parts) == pytest.approx(loss(stops))


def test_an_interval_never_leaves_the_bounds_nor_the_estimate() -> None:
    stops = [(n, 0, 10, 12) for n in range(100)]
    estimate, low, high = loss(stops)
    assert 0 <= low < estimate < high <= 1_200
    assert loss([]) == (0, 0, 0)


def test_pages_and_tables_compute_the_same() -> None:
    stops = [(n % 3, n % 7, n, 10 * n + 5, 30 * n + 20) for n in range(40)]
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE stalls (incarnation INT, generation_id INT, from_member_id VARCHAR, "
                       "stopped_ms_min BIGINT, stopped_ms BIGINT, stopped_ms_max BIGINT)")  # fmt: skip
        engine.executemany("INSERT INTO stalls VALUES (0, ?, ?, ?, ?, ?)", [(g, f"m{m}", *ms) for g, m, *ms in stops])
        of_stops = f"SELECT {ONE_STOP}, {OF_STOPS} FROM stalls GROUP BY {ONE_STOP}"
        of_generations = f"SELECT {OF_SUM} FROM ({of_stops}) GROUP BY generation_id"
        asked = (f"SELECT {OF_SUM} FROM ({of_stops})", f"SELECT {OF_SUMS} FROM ({of_generations})")
        found = [engine.sql(sql).fetchall()[0] for sql in asked]
    estimate, low, high = loss(((g, m), *ms) for g, m, *ms in stops)
    for least, lost, most, lost_low, lost_high in found:
        assert (lost, lost_low, lost_high) == pytest.approx((estimate / 1000, low / 1000, high / 1000))
        assert least <= lost_low <= lost <= lost_high <= most


def test_a_row_says_which_interval_it_has() -> None:
    row = {"lost_resource_seconds": 58.0, "lost_resource_seconds_min": 9.0, "lost_resource_seconds_max": 172.0}
    assert "(9.0" in of_row(row)
    assert "(90 %: 50.0" in of_row(row | {"lost_resource_seconds_low": 50.0, "lost_resource_seconds_high": 71.0})
    nothing = dict.fromkeys([*row, "lost_resource_seconds_low", "lost_resource_seconds_high"], 0.0)
    assert of_row(nothing) == "0"


def recorded(name: str, sources: str) -> dict[str, list[tuple]]:
    """By group: (generation, key, bounds and estimate, true length) of each stop whose truth is known."""
    rows = silver_of(batches(name, sources=sources), name)
    want: dict[tuple, list[tuple[float, float]]] = {}
    for group, described in truth(name)["groups"].items():
        for stop in described["stops"]:
            is_late = stop["end"] in ("lost", "superseded")
            ends = (stop["last_message_ms"] if is_late else stop["end_ms"], stop["assign_ms"])
            if None not in ends:
                want.setdefault((group, stop["topic"], stop["partition"]), []).append(ends)
    found: dict[str, list[tuple]] = {}
    for stall in sorted(filter(is_lost, rows["stalls"]), key=lambda s: s["stopped_at_latest"]):
        near = want.get((stall["group_id"], stall["name"], stall["index"]), [])
        resumed = (stall["resumed_at_earliest"] + stall["resumed_at_latest"]) / 2
        best = min(near, key=lambda t: abs(t[1] - resumed) + abs(t[0] - resumed + stall["stopped_ms"]), default=None)
        if best is None or best[0] > stall["resumed_at_latest"] + 150 or best[1] < stall["stopped_at_earliest"] - 150:
            continue
        near.remove(best)
        key = (stall["generation_id"], stall["from_member_id"])
        lengths = (stall["stopped_ms_min"], stall["stopped_ms"], stall["stopped_ms_max"])
        found.setdefault(stall["group_id"], []).append((stall["generation_id"], key, lengths, best[1] - best[0]))
    return found


def covered(totals: list[list[tuple]]) -> float:
    hits = 0
    for stops in totals:
        _, low, high = loss((key, *lengths) for _, key, lengths, _ in stops)
        slack = SLACK_MS * len(stops)
        hits += low - slack <= sum(length for *_, length in stops) <= high + slack
    return hits / len(totals)


@pytest.fixture(scope="module")
def groups() -> list[list[tuple]]:
    return [s for name in NAMES for sources in ("offsets,log", "offsets") for s in recorded(name, sources).values()]


def test_the_interval_holds_in_nine_of_ten_totals_of_recorded_groups(groups) -> None:
    by_rebalance = [[s for s in stops if s[0] == g] for stops in groups for g in {s[0] for s in stops}]
    assert covered(groups) >= 0.85
    assert covered(by_rebalance) >= 0.85


def test_the_interval_is_much_narrower_than_the_bounds(groups) -> None:
    shares = []
    for stops in groups:
        _, low, high = loss((key, *lengths) for _, key, lengths, _ in stops)
        shares.append((high - low) / sum(most - least for _, _, (least, _, most), _ in stops))
    assert sum(shares) / len(shares) < 0.45


def test_hours_of_a_group_add_up_to_its_interval() -> None:
    rows = silver_of(batches("eager_churn"), "eager_churn")
    until = max(row["last_record_at"] for row in rows["groups"])
    for group in {row["group_id"] for row in rows["generations"]}:
        mine = {name: [r for r in found if r["group_id"] == group] for name, found in rows.items()}
        hours = health_rows(mine, until)
        of_stops = loss(
            ((s["generation_id"], s["from_member_id"]), s["stopped_ms_min"], s["stopped_ms"], s["stopped_ms_max"])
            for s in filter(is_lost, mine["stalls"])
        )
        of_hours = summed(
            tuple(h[f"lost_resource_seconds{end}"] * 1000 for end in ("", "_low", "_high")) for h in hours
        )
        assert of_hours[0] == pytest.approx(of_stops[0])
        if len({h["hour_at"] // HOUR_MS for h in hours}) == 1:
            assert of_hours == pytest.approx(of_stops)
