"""What an erase leaves: nothing of the name, everything else, and a receipt that does not tell it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from jobs import small_table
from jobs.build import rebuild_all
from jobs.cli import main
from jobs.delta_io import table_path
from jobs.erase import Name, erase
from jobs.settings import Settings
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from schemas.gold import ALERTS
from schemas.operations import QUALITY_RESULTS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS
from schemas.tables import Table
from tests.jobs.conftest import differing, silver
from tests.source.offset_records import group_key


def rows(warehouse: Path, table: Table) -> list[dict[str, Any]]:
    return DeltaTable(table_path(warehouse, table)).to_pyarrow_table().to_pylist()


def texts(warehouse: Path) -> Iterable[tuple[str, str]]:
    """Every row of every table, as text."""
    for path in sorted(warehouse.glob("*/_delta_log")):
        for row in DeltaTable(str(path.parent)).to_pyarrow_table().to_pylist():
            yield path.parent.name, repr(row)


def of_group(rows: dict[str, list[str]], group: str) -> dict[str, list[str]]:
    return {name: [row for row in found if f"'group_id': '{group}'" not in row] for name, found in rows.items()}


@pytest.fixture
def told(recorded) -> tuple[Path, str, pa.Table]:
    """The recorded history, a group of it, and what of it could not be read."""
    group = max(rows(recorded, GENERATIONS), key=lambda row: row["member_count"])["group_id"]
    place = {"cluster": "kafka", "source": "__consumer_offsets", "log_epoch": 0, "source_partition": 0}
    bad = {"reason": "truncated", "detail": "cut short", "raw_value": b"\xff"}
    about = {"cluster": "kafka", "started_at": 1}
    stuck = about | {"alert_name": "stuck", "subject": group}
    storm = about | {"alert_name": "storm", "subject": "", "summary": f"{group} and other-{group}"}
    small_table.append(recorded, ALERTS, [stuck, storm])
    small_table.append(
        recorded,
        QUALITY_RESULTS,
        [{"table_name": "t", "checked_at": 1, "rule": "r", "examples": [f"kafka, {group}, 0", "kafka, other, 0"]}],
    )
    kept = pa.Table.from_pylist(
        [
            place | bad | {"source_offset": n, "raw_key": key}
            for n, key in enumerate((group_key(group), group_key("other")))
        ],
        schema=DeltaTable(table_path(recorded, QUARANTINE)).to_pyarrow_table().schema,
    )
    return recorded, group, kept


def test_a_group_is_gone_from_every_table_and_file_and_the_others_rows_stay(spark, told, tmp_path) -> None:
    warehouse, group, kept = told
    spark.createDataFrame(kept).write.format("delta").mode("append").save(table_path(warehouse, QUARANTINE))
    standing = silver(warehouse)
    receipt = erase(spark, warehouse, Name.of("kafka", group=group, host=None), vacuum_days=0.0)
    named = [(table, row) for table, row in texts(warehouse) if f"'{group}'" in row or f" {group} " in row]
    assert [] == named
    assert {} == differing(of_group(standing, group), silver(warehouse))
    assert [1] == [row["source_offset"] for row in rows(warehouse, QUARANTINE)]
    (storm,) = rows(warehouse, ALERTS)
    assert storm["summary"].endswith(f"other-{group}")
    assert storm["summary"].startswith("~")
    assert group not in json.dumps(receipt)
    deleted = {found["table"]: found["rows_deleted"] for found in receipt["tables"]}
    assert all(deleted[table.name] > 0 for table in (COORDINATOR_RECORDS, OFFSET_COMMITS, GENERATIONS, GROUPS))
    assert all(found["files_removed"] > 0 for found in receipt["tables"] if found["rows_deleted"])
    rebuild_all(spark, warehouse, Settings().quiet_ms)
    assert {} == differing(of_group(standing, group), silver(warehouse))


def test_a_host_gives_way_to_a_mark_in_text_and_bytes_and_records_can_still_be_read(spark, recorded) -> None:
    host = next(row["client_host"] for row in rows(recorded, GENERATION_MEMBERS))
    standing = silver(recorded)
    erase(spark, recorded, Name.of("kafka", group=None, host=host), vacuum_days=7.0)
    assert [] == [table for table, row in texts(recorded) if host in row and f"{host}0" not in row]
    after = silver(recorded)
    marks = {row["client_host"] for row in rows(recorded, GENERATION_MEMBERS)}
    assert all(len(mark) == len(host) and mark.startswith("/~") for mark in marks)
    (mark,) = marks
    assert {} == differing({n: sorted(r.replace(host, mark) for r in found) for n, found in standing.items()}, after)
    assert all(mark.encode() in r["raw_value"] for r in rows(recorded, COORDINATOR_RECORDS) if mark in r["body"])
    rebuild_all(spark, recorded, Settings().quiet_ms)
    assert {} == differing(after, silver(recorded))


def test_nothing_to_erase_leaves_every_version_as_it_is(spark, recorded) -> None:
    before = DeltaTable(table_path(recorded, COORDINATOR_EVENTS)).version()
    receipt = erase(spark, recorded, Name.of("kafka", group="nobody", host=None), vacuum_days=7.0)
    assert {(0, 0, 0)} == {(t["rows_deleted"], t["rows_changed"], t["files_removed"]) for t in receipt["tables"]}
    assert before == DeltaTable(table_path(recorded, COORDINATOR_EVENTS)).version()


def test_erasing_nothing_or_from_nowhere_is_one_sentence_and_exit_code_2(warehouse, capsys) -> None:
    for given, said in ((["--group", ""], "Nothing to erase"), (["--host", "/10.1.2.3"], "has no tables")):
        assert 2 == main(["erase", "--cluster", "kafka", *given, "--warehouse", str(warehouse)])
        assert said in capsys.readouterr().err
