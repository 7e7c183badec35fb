"""The same input gives the same rows, whatever the batches, the order of sources, duplicates and the begin of a
rebuild.
"""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import pytest

from jobs.replay import Capture, split
from pipelines.silver.coordinator_assigned.snapshot import from_json, to_json
from pipelines.silver.generations import ResumeState
from pipelines.silver.history import CommitHistory, History, Position
from pipelines.silver.rows import silver_rows
from schemas.states import RebalanceMode
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, histories, silver_of, with_duplicates
from tests.silver.behind import BACK

CLASSIC = ("eager_churn", "rolling_restart", "connect")
NAMES = (*CLASSIC, "migration")


def comparable(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, (sorted(row.items()) for row in of_table))) for name, of_table in rows.items()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("count", "seed"), [(7, 1), (7, 2), (100, 3)])
def test_any_batching_order_and_duplication_gives_the_same_rows(name, count, seed) -> None:
    whole = silver_of(batches(name), name)
    parts = with_duplicates(batches(name, count=count, seed=seed), 0.1, seed)
    assert comparable(whole) == comparable(silver_of(parts, name))


@pytest.mark.parametrize("quiet_ms", [10, 1_000, 10_000])
@pytest.mark.parametrize("name", CLASSIC)
def test_a_rebuild_from_any_settled_episode_gives_the_rows_of_a_whole_rebuild(name, quiet_ms) -> None:
    restarted = 0
    for history in histories(batches(name), Capture(CAPTURES / name).meta):
        whole = silver_rows(history, quiet_ms)
        for base, first in settled(whole):
            if first["source_offset"] not in named(whole):
                continue
            later = dataclasses.replace(history, records=[r for r in history.records if r.position >= base.position])
            restarted += 1
            expected = {table: [r for r in rows if is_after(table, r, first)] for table, rows in whole.items()}
            assert comparable(expected) == comparable(silver_rows(later, quiet_ms, base))
    assert restarted > 1


def test_where_the_clock_goes_back_a_rebuild_from_any_point_gives_the_rows_of_a_whole_rebuild() -> None:
    restarted = left_out = 0
    for history in histories(split(BACK, ("offsets",), 1, None), BACK.meta):
        whole = silver_rows(history, 10_000)
        for base, first in settled(whole):
            if first["source_offset"] not in named(whole):
                left_out += 1
                continue
            later = dataclasses.replace(history, records=[r for r in history.records if r.position >= base.position])
            restarted += 1
            expected = {table: [r for r in rows if is_after(table, r, first)] for table, rows in whole.items()}
            assert comparable(expected) == comparable(silver_rows(later, 10_000, base))
    assert restarted
    assert left_out, "the clock went back"


@pytest.mark.parametrize("name", CLASSIC)
def test_a_rebuild_from_before_a_group_began_anew_gives_the_generations_of_a_whole_rebuild(name) -> None:
    restarted = 0
    for history in histories(batches(name), Capture(CAPTURES / name).meta):
        bases = settled(silver_rows(history, 10_000))
        again = [dataclasses.replace(r, position=(r.position[0] + 1, r.position[1])) for r in history.records]
        twice = dataclasses.replace(history, records=[*history.records, *again])
        whole = silver_rows(twice, 10_000)["generations"]
        for base, first in bases[-1:]:
            later = dataclasses.replace(twice, records=[r for r in twice.records if r.position >= base.position])
            restarted += 1
            expected = {"": [row for row in whole if is_after("generations", row, first)]}
            assert comparable(expected) == comparable({"": silver_rows(later, 10_000, base)["generations"]})
    assert restarted


@pytest.mark.parametrize("quiet_ms", [10, 1_000, 10_000])
@pytest.mark.parametrize("name", ["rolling_restart", "migration", "share_registry", "streams"])
def test_a_rebuild_from_any_state_at_rest_gives_the_rows_of_a_whole_rebuild(name, quiet_ms) -> None:
    given = histories(batches(name), Capture(CAPTURES / name).meta)
    assert sum(gone_on_from_each_rest(history, quiet_ms) for history in given)


def gone_on_from_each_rest(history: History, quiet_ms: int) -> int:
    """Check that the rows after each rest are those of a whole rebuild; return the number of rests."""
    whole, rests = silver_rows(history, quiet_ms), 0
    for episode in whole["rebalances"]:
        if (state := episode["base_state"]) is None:
            continue
        assert to_json(from_json(state)) == state
        base = ResumeState(
            position=(episode["base_log_epoch"], episode["base_offset"]),
            incarnation=episode["incarnation"],
            mode=RebalanceMode(episode["base_rebalance_mode"]),
            first_seen_at=whole["groups"][0]["first_seen_at"],
            state=state,
        )
        rests += 1
        expected = {table: [r for r in rows if stands_not(table, r, episode)] for table, rows in whole.items()}
        assert comparable(expected) == comparable(silver_rows(since(history, base), quiet_ms, base))
    return rests


def since(history: History, base: ResumeState) -> History:
    """Return the history that a rebuild from `base` reads."""
    return dataclasses.replace(
        history,
        records=[r for r in history.records if r.position >= base.position],
        commits=commits_since(history.commits, base.position),
    )


def commits_since(commits: CommitHistory, position: Position) -> CommitHistory:
    out = CommitHistory(())
    out._topics = {i: described for i, described in commits._topics.items() if described[0] >= position}
    kept = {resource: [p for p in points if p.position >= position] for resource, points in commits._points.items()}
    out._points = {resource: points for resource, points in kept.items() if points}
    return out


def stands_not(table: str, row: dict[str, Any], episode: dict[str, Any]) -> bool:
    first = episode | {"generation_id": episode["first_generation_id"]}
    return is_after(
        table, row, first | {"source_offset": episode["base_offset"], "log_epoch": episode["base_log_epoch"]}
    )


def test_a_group_that_changed_its_protocol_is_rebuilt_from_its_first_record() -> None:
    rows = silver_of(batches("migration"), "migration")
    groups = {row["group_id"] for row in rows["generations"] if row["group_protocol"] == "consumer"}
    assert {"mig-up", "mig-coop", "mig-empty", "crash", "regex"} == groups
    at_rest = {row["group_id"] for row in rows["rebalances"] if row["base_offset"] is not None}
    assert {"crash", "regex"} >= at_rest, "these never had another protocol"


def named(rows: dict[str, list[dict[str, Any]]]) -> set[int]:
    """Return the offsets of the first generation of each episode from which a rebuild may begin.

    The other episodes began with every resource owned, but a later record decides whether one of the owners resumed.
    """
    return {row["source_offset"] for row in rows["rebalances"] if row["base_offset"] is not None}


def settled(rows: dict[str, list[dict[str, Any]]]) -> list[tuple[ResumeState, dict[str, Any]]]:
    """Return each episode of a classic group that began with nothing open, and the generation before it."""
    out, of_group = [], rows["generations"]
    if {row["group_protocol"] for row in of_group} != {"classic"}:
        return []
    starts = {(e["incarnation"], e["first_generation_id"]) for e in rows["rebalances"]}
    for before, first in pairwise(of_group):
        place = first["log_epoch"], first["source_offset"]
        still_open = any(
            (s["log_epoch"], s["stopped_by_offset"]) < place
            and (s["resumed_generation_id"] is None or s["resumed_generation_id"] >= first["generation_id"])
            for s in rows["stalls"]
        )
        same_life = before["incarnation"] == first["incarnation"]
        if still_open or not same_life or (first["incarnation"], first["generation_id"]) not in starts:
            continue
        base = ResumeState(
            position=(before["log_epoch"], before["source_offset"]),
            incarnation=before["incarnation"],
            mode=RebalanceMode(before["rebalance_mode"]),
            first_seen_at=rows["groups"][0]["first_seen_at"],
        )
        out.append((base, first | {"base_at": before["completed_at"]}))
    return out


def is_after(table: str, row: dict[str, Any], first: dict[str, Any]) -> bool:
    number = row.get("first_generation_id", row.get("generation_id"))
    match table:
        case "groups":
            return True
        case "group_events":
            return row["event_at"] > first["base_at"]
        case "stalls":
            place = first["log_epoch"], first["source_offset"]
            return (row["log_epoch"], row["stopped_by_offset"]) >= place
        case _:
            return (row["incarnation"], number) >= (first["incarnation"], first["generation_id"])
