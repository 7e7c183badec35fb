"""A storm's cause is a cause of its groups' diagnoses, and its figures are the sums of those of its groups."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import write_deltalake

from jobs.gold.storm_causes import COLUMNS
from jobs.gold.storms import scan
from jobs.tables.paths import table_path
from pipelines.arrow_types import stored
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.rebalance_causes import rebalance_causes
from pipelines.gold.rows import AnalysisConfig, gold_rows
from schemas.gold import DIAGNOSES
from schemas.loss_interval import summed
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, GROUPS, STALLS
from schemas.states import NORMAL_CAUSES
from schemas.tables import Table
from testing.recordings import CAPTURES
from testing.simulation.simulated_days import HOUR, START, STORMS, Cluster
from testing.warehouses.rebuilding import batches, silver_of
from tests.gold.patterns import pattern_histories as lives
from tests.gold.simulated import CLUSTER

SILVER = (GENERATIONS, GENERATION_MEMBERS, GROUP_EVENTS, STALLS, GROUPS)
INPUTS = SILVER[:-1]
NAMES = sorted(folder.name for folder in CAPTURES.iterdir() if (folder / "meta.json").exists())
Rows = dict[Table, list[dict[str, Any]]]


def recorded(name: str, sources: str) -> Rows:
    found = silver_of(batches(name, sources=sources), name)
    return {table: [row | {"cluster": CLUSTER} for row in found[table.name]] for table in SILVER}


def simulated(seed: int, kinds: list[str], *, groups: int = 30) -> Rows:
    """A day of a cluster with storms of these kinds, and stalls at random: one for each generation."""
    cluster, random = Cluster(seed, groups=groups, days=1), Random(seed)
    for group in cluster.groups:
        group.with_members = True
    cluster.calm()
    for place, kind in enumerate(kinds):
        cluster.storm(kind, START + place * 3 * HOUR)
    rows: Rows = {table: [] for table in SILVER}
    for group in cluster.groups:
        generations, events = group.rows()
        rows[GENERATIONS] += generations
        rows[GROUP_EVENTS] += events
        rows[GENERATION_MEMBERS] += group.members
        rows[STALLS] += [_stall(g, random.randrange(90_000)) for g in generations]
        last = max(g["joined_at"] for g in generations)
        rows[GROUPS].append({"group_id": group.group_id, "first_seen_at": START - HOUR, "last_record_at": last})
    whole = {table: dict.fromkeys(table.names) | {"cluster": CLUSTER} for table in SILVER}
    return {table: [whole[table] | row for row in mine] for table, mine in rows.items()}


def _stall(g: dict[str, Any], length: int) -> dict[str, Any]:
    key = {name: g[name] for name in ("group_id", "incarnation", "generation_id")}
    times = {"stopped_at_earliest": g["joined_at"] - 10, "stopped_at_latest": g["joined_at"]}
    lengths = {"stopped_ms_min": length, "stopped_ms": length, "stopped_ms_max": length + 7}
    ends = {"resumed_at_earliest": g["joined_at"] + length, "resumed_at_latest": g["joined_at"] + length + 7}
    named = {"name": "t", "index": 0, "log_epoch": 0, "stopped_by_offset": g["generation_id"], "cause": "moved"}
    return key | times | lengths | ends | named


def storms_of(folder: Path, rows: Rows) -> list[dict[str, Any]]:
    for table, mine in rows.items():
        write_deltalake(table_path(folder, table), stored(mine, table), mode="overwrite")
    return [dict(row) for row in scan(folder).new]


def diagnosed(rows: Rows) -> dict[str, set[str]]:
    """Causes of every group's diagnoses, over all its days."""
    of_group: dict[str, dict[str, list[Any]]] = defaultdict(lambda: {table.name: [] for table in INPUTS})
    for table in INPUTS:
        for row in rows[table]:
            of_group[row["group_id"]][table.name].append(row)
    until = max(row["last_record_at"] for row in rows[GROUPS])
    shared = {"broker": _broker(), "config": AnalysisConfig(), "since_ms": 0}
    return {
        group: {
            row["cause"]
            for row in gold_rows(CLUSTER, group, mine, until_ms=until, tables=(DIAGNOSES,), **shared)["diagnoses"]
        }
        for group, mine in of_group.items()
    }


def _broker() -> BrokerSettings:
    return BrokerSettings(heartbeat_ms=None, session_ms=None, initial_delay_ms=None, assignment_interval_ms=None)


def agree(storms: list[dict[str, Any]], causes: dict[str, set[str]]) -> None:
    for storm in storms:
        of_groups = set().union(*(causes.get(group, set()) for group in storm["group_ids"]))
        described = {each["cause"] for each in storm["causes"]}
        assert storm["suspected_cause"] in described | {None}, storm
        assert described <= of_groups, (storm, causes)


def add_up(storms: list[dict[str, Any]]) -> None:
    for storm in storms:
        groups = storm["by_group"]
        assert [each["group_id"] for each in groups] == storm["group_ids"]
        assert sum(each["rebalances"] for each in groups) == storm["rebalances"]
        lost = [each["lost_resource_seconds"] for each in groups]
        assert sorted(lost, reverse=True) == lost, "hardest hit first is by what was lost"
        for column in ("lost_resource_seconds_min", "lost_resource_seconds", "lost_resource_seconds_max"):
            assert sum(each[column] for each in groups) == pytest.approx(storm[column])
        interval = summed(
            tuple(each[f"lost_resource_seconds{end}"] for end in ("", "_low", "_high")) for each in groups
        )
        assert interval == pytest.approx(tuple(storm[f"lost_resource_seconds{end}"] for end in ("", "_low", "_high")))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sources", ["offsets,log", "offsets"])
def test_a_recorded_storm_has_a_cause_of_its_groups_diagnoses(tmp_path, name, sources) -> None:
    rows = recorded(name, sources)
    storms = storms_of(tmp_path, rows)
    agree(storms, diagnosed(rows))
    add_up(storms)
    with_log = ("outage", "coordinator_frozen")
    assert bool(storms) == (
        name in ("storms", "settings", "offsets_topic", "refused_assignments")
        or (name in with_log and sources == "offsets,log")
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_simulated_storm_has_a_cause_of_its_groups_diagnoses(tmp_path, seed) -> None:
    kinds = [kind for kind in STORMS if kind != "static crash loop"]
    rows = simulated(seed, kinds[seed % 2 :: 2])
    storms = storms_of(tmp_path, rows)
    assert len(storms) >= 4
    agree(storms, diagnosed(rows))
    add_up(storms)
    suspected = [storm["suspected_cause"] for storm in storms]
    assert sum(cause in NORMAL_CAUSES for cause in suspected) <= len(suspected) // 3


LIVES = (
    lives.expelling, lives.rejoin_loop, lives.poll_timeouts, lives.refused, lives.alternating, lives.blocked,
    lives.unowned, lives.connect_delay, lives.never_closed, lives.not_kept, lives.without_leader,
)  # fmt: skip


@pytest.mark.parametrize("sources", [lives.ALONE, lives.LOG])
@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_the_columns_that_are_read_are_enough_for_every_pattern(life, sources) -> None:
    """A column that only a rare pattern needs would otherwise end `up` when that pattern is part of a storm."""
    whole = life().silver(sources)
    part = {t.name: [{c: row[c] for c in COLUMNS[t] if c in row} for row in whole[t.name]] for t in INPUTS}
    expected, found = rebalance_causes(whole), rebalance_causes(whole | part)
    for g in whole["generations"]:
        at = g["joined_at"]
        number = g["incarnation"], g["generation_id"]
        assert expected.cause(number, at) == found.cause(number, at)
