"""`analyze` on real tables: the same gold whenever it runs, and no work is done twice."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.analyze import analyze, run
from jobs.config.settings import Settings
from jobs.gold.analyze_part import Part, analyze_part
from jobs.gold.replaying import FEW_GROUPS, Replaying
from jobs.processes.spawned_pool import spawned_pool
from jobs.replay import Capture, record_settings, replay, split
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.arrow_types import schema_of
from schemas.bronze import BRONZE
from schemas.gold import ADVICE, DEPLOYS, DIAGNOSES, GROUP_HEALTH, GROUP_TABLES, MARKS, PATTERNS, VERDICTS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from testing.recordings import CAPTURES

NAME, CLUSTER = "rolling_restart", "kafka"


def gold(warehouse: Path) -> dict[str, list[str]]:
    """Return every gold row, independent of the order in its files."""
    tables = {
        t.name: DeltaTable(table_path(warehouse, t)).to_pyarrow_table(columns=list(t.names)) for t in GROUP_TABLES
    }
    return {name: sorted(map(repr, rows.to_pylist())) for name, rows in tables.items()}


def versions(warehouse: Path) -> list[int]:
    return [DeltaTable(table_path(warehouse, t)).version() for t in GROUP_TABLES]


def mark_deploy(warehouse: Path) -> str:
    """Announce a deploy of one group, just before one that nobody announced; returns the group."""
    found = DeltaTable(table_path(warehouse, DIAGNOSES)).to_pyarrow_table().to_pylist()
    deploy = next(row for row in found if row["cause"] == "deploy")
    at, group = deploy["first_at"] - timedelta(seconds=1), deploy["group_id"]
    row = {
        "cluster": CLUSTER,
        "marked_at": at,
        "kind": "deploy",
        "text": "v2.31",
        "group_ids": [group, "of another team"],
    }
    write_deltalake(table_path(warehouse, MARKS), pa.Table.from_pylist([row], schema_of(MARKS)))
    return str(group)


def forget(warehouse: Path) -> None:
    (warehouse / "_checkpoints" / "analyze" / "analysed.json").unlink()
    for table in GROUP_TABLES:
        DeltaTable(table_path(warehouse, table)).delete()


def test_gold_is_the_same_whenever_it_was_analysed_and_settles(spark, warehouse, monkeypatch) -> None:
    capture, settings = Capture(CAPTURES / NAME), Settings(warehouse=warehouse)
    create_tables(spark, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES))
    record_settings(spark, settings, CLUSTER, capture.meta)
    analysed = []
    for batch in split(capture, ("offsets", "log"), 2, None):
        replay(spark, settings, CLUSTER, capture.meta, batch)
        analysed.append(analyze(spark, settings))
    assert min(analysed) > 0
    step_by_step, before = gold(warehouse), versions(warehouse)
    assert {row["action"] for row in DeltaTable(table_path(warehouse, ADVICE)).to_pyarrow_table().to_pylist()} >= {
        "static_membership",
        "cooperative_assignor",
        "consumer_protocol",
        "consumer_protocol_static",
        "none",
    }

    assert analyze(spark, settings) == 0
    assert versions(warehouse) == before, "nothing is written where nothing changed"

    (warehouse / "_checkpoints" / "analyze" / "analysed.json").unlink()
    analyze(spark, settings)
    assert gold(warehouse) == step_by_step, "what was remembered only saves work"

    monkeypatch.setattr("jobs.analyze.session_of", lambda *_: pytest.fail("no session is needed"))
    pools = []
    monkeypatch.setattr("jobs.gold.replaying.spawned_pool", lambda count: pools.append(count) or spawned_pool(count))
    for few, started in ((FEW_GROUPS, []), (3, [2])):
        monkeypatch.setattr("jobs.gold.replaying.FEW_GROUPS", few)
        forget(warehouse)
        run(replace(settings, cores=2), Namespace(once=True))
        assert gold(warehouse) == step_by_step, "many groups are analyzed by several processes"
        assert pools == started

    forget(warehouse)
    parts = []
    with Replaying() as replaying:
        while not parts or parts[-1].left:
            tables = (GROUP_HEALTH, DIAGNOSES, VERDICTS, DEPLOYS, PATTERNS)
            parts.append(analyze_part(spark, settings, tables=tables, most=3, replaying=replaying))
        advice = DeltaTable(table_path(warehouse, ADVICE))
        assert 0 == advice.to_pyarrow_dataset().count_rows(), "it is another part's"
        rest = analyze_part(spark, settings, tables=(ADVICE,), replaying=replaying)
        assert rest == Part(analysed=sum(part.analysed for part in parts), left=0)
    assert len(parts) > 1
    assert all(part.analysed == 3 for part in parts[:-1])
    assert sum(part.analysed for part in parts) == parts[0].analysed + parts[0].left, "each group once"
    assert gold(warehouse) == step_by_step, "in parts and without Spark it is the same"

    group = mark_deploy(warehouse)
    with Replaying() as replaying:
        tables = (GROUP_HEALTH, DIAGNOSES, VERDICTS, DEPLOYS, PATTERNS)
        marked = analyze_part(spark, settings, tables=tables, replaying=replaying)
        assert marked == Part(analysed=1, left=0), "of all groups only that which the mark is about"
        advised = analyze_part(spark, settings, tables=(ADVICE,), replaying=replaying)
        assert advised == Part(analysed=0, left=0), "no advice asks for marks"
    assert {group in row for row in gold(warehouse)["diagnoses"] if "v2.31" in row} == {True}
    announced = [row for row in gold(warehouse)["deploys"] if "v2.31" in row]
    assert [group in row for row in announced] == [True], "one deploy, of the group that the mark names"
    others = [row for row in step_by_step["deploys"] if group not in row]
    assert others == [row for row in gold(warehouse)["deploys"] if group not in row]

    # With the default threshold, a group that loses so little gets no recommendation; with a threshold of 0 it may.
    analyze(spark, replace(settings, worth_resource_seconds=0.0, worth_ratio=0.0))
    assert gold(warehouse) != step_by_step, "another threshold is another advice"
