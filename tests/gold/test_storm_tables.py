"""`storms` on real tables: the same rows in whatever batches silver was written, and no row is scanned twice."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.gold.storm_thread import scan_as_of
from jobs.gold.storms import Update, memory_path, scan
from jobs.processes.worker_process import WorkerProcess
from jobs.tables.as_of import versions
from jobs.tables.paths import table_path
from pipelines.arrow_types import stored
from schemas.gold import MARKS, STORMS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, GROUPS, STALLS
from testing.simulation.simulated_days import Cluster
from tests.gold.simulated import CLUSTER, DAY, HOUR, MINUTE, SECOND, START, group, groups_table, tables
from tests.whole_rows import whole

pytestmark = pytest.mark.slow


def stormy() -> list[Any]:
    """A group that polls too slowly for an hour, six that lose their coordinator, ten that are only deployed."""
    slow = group("slow")
    for ref in range(10):
        slow.do(START + ref * 6 * MINUTE, "poll_timeout", 1, 5 * SECOND)
    cut = [group(f"cut-{number}", size=2) for number in range(6)]
    for number, one in enumerate(cut):
        one.partition = 7
        one.do(START + 2 * HOUR, "load", 2)
        for index in range(2):
            one.do(START + 2 * HOUR + 5 * SECOND + number * SECOND, "cut", index, 2 * SECOND)
    calm = [group(f"calm-{number}", size=3) for number in range(10)]
    for number, one in enumerate(calm):
        one.partition = number + 10
        one.deploy(START + number * MINUTE, pause_ms=10 * SECOND, away_ms=5 * SECOND)
    return [slow, *cut, *calm]


class Warehouse:
    """Silver in some batches; deltalake does Spark's part of the work here, because it starts sooner."""

    def __init__(self, folder: Path, groups: list[Any]) -> None:
        self.folder, self.described, self.groups = folder, 0, groups

    def goes_on_until(self, until: int) -> None:
        groups = self.groups
        for table, rows in tables(groups, since=self.described, until=until).items():
            write_deltalake(table_path(self.folder, table), rows, mode="append")
        write_deltalake(table_path(self.folder, GROUPS), groups_table(groups, until), mode="overwrite")
        self.described = until

    def scanned(self) -> Update:
        return scan(self.folder)

    def update(self) -> list[dict[str, Any]]:
        found = self.scanned()
        ids = {row["storm_id"] for row in found.old}
        kept = [row for row in self.storms() if row["storm_id"] not in ids]
        rows = stored(found.new, STORMS)
        write_deltalake(table_path(self.folder, STORMS), stored([], STORMS), mode="append")
        standing = [row for row in kept if row] + rows.to_pylist()
        write_deltalake(table_path(self.folder, STORMS), rows.from_pylist(standing, rows.schema), mode="overwrite")
        if found.memory is not None:
            found.memory.save(memory_path(self.folder))
        return self.storms()

    def storms(self) -> list[dict[str, Any]]:
        path = table_path(self.folder, STORMS)
        if not DeltaTable.is_deltatable(path):
            return []
        return sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=lambda row: row["started_at"])


@pytest.fixture
def kept(tmp_path) -> Warehouse:
    return Warehouse(tmp_path, stormy())


def test_storms_are_the_same_in_any_batching(kept, tmp_path) -> None:
    kept.goes_on_until(START + 20 * MINUTE)
    [first] = kept.update()
    assert (first["group_ids"], first["is_open"], first["ended_at"]) == (["slow"], True, None)
    for until in (55 * MINUTE, 2 * HOUR + 6 * SECOND, 2 * HOUR + 9 * SECOND, 3 * HOUR):
        kept.goes_on_until(START + until)
        step_by_step = kept.update()
    slow, fleet = step_by_step
    assert slow["storm_id"] == first["storm_id"], "it keeps its id while it grows"
    assert (slow["unexplained_rebalances"], slow["suspected_cause"]) == (10, "poll_timeout")
    assert (fleet["scope"], fleet["groups"], fleet["is_open"]) == ("fleet", 6, False)
    assert "offsets_partition" in {d["attribute"] for d in fleet["differences"]}

    at_once = Warehouse(tmp_path / "at once", kept.groups)
    at_once.goes_on_until(START + 3 * HOUR)
    assert at_once.update() == step_by_step

    memory_path(kept.folder).unlink()
    assert kept.update() == step_by_step, "what was remembered only saves work"


def test_an_ordinary_day_with_storms_is_the_same_in_any_batching(tmp_path) -> None:
    cluster = Cluster(11, groups=20, days=1)
    cluster.calm()
    for place, kind in enumerate(("failover", "poll timeouts", "crash loop", "network")):
        cluster.storm(kind, START + place * 5 * HOUR)
    in_steps, at_once = Warehouse(tmp_path / "in steps", cluster.groups), Warehouse(tmp_path / "once", cluster.groups)
    rng, at = Random(3), START
    while at < START + DAY:
        at += rng.choice((MINUTE, 10 * MINUTE, HOUR, 5 * HOUR, 5 * HOUR))
        in_steps.goes_on_until(at)
        in_steps.update()
    at_once.goes_on_until(at)
    assert len(at_once.update()) >= 3
    assert in_steps.storms() == at_once.storms()


def test_what_was_announced_of_those_hit_alone_tells_them_from_the_rest(kept) -> None:
    hit = [one.group_id for one in kept.groups if one.group_id.startswith("cut")]
    described = {"v2.31": hit, "v9": ["calm-1"]}
    marks = [
        {"marked_at": START + 2 * HOUR - MINUTE, "kind": "deploy", "text": text, "group_ids": groups}
        for text, groups in described.items()
    ]
    kept.goes_on_until(START + 3 * HOUR)
    kept.update()
    write_deltalake(
        table_path(kept.folder, MARKS), stored([whole({"cluster": CLUSTER} | mark, MARKS) for mark in marks], MARKS)
    )
    _, fleet = kept.update()
    by_attribute = {d["attribute"]: d for d in fleet["differences"]}
    assert (by_attribute["mark"]["value"], by_attribute["mark"]["share"]) == ("v2.31", 1.0)
    assert by_attribute["mark"]["baseline"] == 0.0


def test_another_process_finds_them_as_silver_was_then(kept) -> None:
    kept.goes_on_until(START + 55 * MINUTE)
    seen, expected = (
        versions(kept.folder, (GENERATIONS, GROUP_EVENTS, GENERATION_MEMBERS, STALLS, GROUPS)),
        kept.scanned(),
    )
    kept.goes_on_until(START + 3 * HOUR)
    with WorkerProcess(scan_as_of) as worker:
        found = worker.ask(kept.folder, seen)
        assert (found.old, found.new) == (expected.old, expected.new) != ([], [])
        assert (found.memory.snapshots, found.memory.disturbances) == (
            expected.memory.snapshots,
            expected.memory.disturbances,
        )
        later = worker.ask(kept.folder, {})
    assert later.new == kept.scanned().new != found.new


def test_nothing_new_is_nothing_to_write(kept) -> None:
    kept.goes_on_until(START + 3 * HOUR)
    before = kept.update()
    found = kept.scanned()
    assert found.memory is None
    assert kept.update() == before


def test_a_cluster_without_storms_has_no_rows(kept) -> None:
    calm = [one for one in stormy() if one.group_id.startswith("calm")]
    for table, rows in tables(calm).items():
        write_deltalake(table_path(kept.folder, table), rows)
    write_deltalake(table_path(kept.folder, GROUPS), groups_table(calm, START + HOUR))
    assert kept.update() == []
