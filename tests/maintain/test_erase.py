"""What an erase leaves: nothing of the name, everything else, and a receipt that does not tell it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.cli import main
from jobs.erase import Name, erase
from jobs.gold.analyze_part import analysed_path
from jobs.gold.storm_memory import SCHEMA, Memory
from jobs.gold.storms import memory_path
from jobs.tables.delta_io import table_path
from jobs.tables.tables import FolderTables
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from schemas.gold import ADVICE, ALERTS, GROUP_TABLES, STORMS
from schemas.operations import QUALITY_RESULTS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS
from tests.jobs.conftest import differing, silver
from tests.maintain.conftest import arrow, rows, silver_again
from tests.source.offset_records import group_key
from tests.whole_rows import whole

CLUSTER = "kafka"


def contents(warehouse: Path) -> Iterator[tuple[str, str]]:
    """Every file but Delta's own log: its name and bytes, and as text what Parquet has packed."""
    for path in sorted(warehouse.rglob("*")):
        if path.is_dir() or "_delta_log" in path.parts:
            continue
        yield path.name, path.read_bytes().decode("latin-1")
        if path.suffix == ".parquet":
            # Rows as text twice over: bytes of raw records come out as their letters.
            yield str(path.relative_to(warehouse)), repr(pq.ParquetFile(path).read().to_pylist())


def but(rows: dict[str, list[str]], group: str) -> dict[str, list[str]]:
    return {name: [row for row in found if f"'group_id': '{group}'" not in row] for name, found in rows.items()}


@pytest.fixture
def described(recorded) -> tuple[Path, str]:
    """The recorded history, and a group of it that everything else names as well."""
    group = max(rows(recorded, GENERATIONS), key=lambda row: row["member_count"])["group_id"]
    about = {"cluster": CLUSTER, "started_at": 1}
    stuck = about | {"alert_name": "stuck", "subject": group}
    storm = about | {"alert_name": "storm", "subject": "", "summary": f"{group} and other-group"}
    FolderTables(recorded).append(ALERTS, [whole(stuck, ALERTS), whole(storm, ALERTS)])
    hit = [{"group_id": g, "rebalances": 2, "lost_resource_seconds": 1.5} for g in (group, "other-group")]
    both = {"cluster": CLUSTER, "storm_id": "s", "started_at": 1, "group_ids": [group, "other-group"], "by_group": hit}
    write_deltalake(table_path(recorded, STORMS), arrow(STORMS, [both]), mode="append")
    rule = {"table_name": "t", "checked_at": 1, "rule": "r"}
    FolderTables(recorded).append(
        QUALITY_RESULTS,
        [whole(rule | {"examples": [f"kafka, {group}, 0", "kafka, other, 0"]}, QUALITY_RESULTS)],
    )
    place = {"cluster": CLUSTER, "source": "__consumer_offsets", "log_epoch": 0, "source_partition": 0}
    place |= {"reason": "truncated", "detail": "cut short", "raw_value": b"\xff"}
    keys = enumerate((group_key(group), group_key("other")))
    kept = arrow(QUARANTINE, [place | {"source_offset": at, "raw_key": key} for at, key in keys])
    write_deltalake(table_path(recorded, QUARANTINE), kept, mode="append")
    Memory(snapshots={}, disturbances=SCHEMA.empty_table()).save(memory_path(recorded))
    analysed_path(recorded).parent.mkdir(parents=True)
    for tables in (GROUP_TABLES, (ADVICE,)):
        described = json.dumps({"marks": [["kafka", 1, group, "deploy", "v2"]]})
        analysed_path(recorded, tables).write_text(described)
    return recorded, group


def test_a_group_is_in_no_file_any_more_and_the_rows_of_others_stay(spark, described) -> None:
    warehouse, group = described
    standing = silver(warehouse)
    assert [name for name, text in contents(warehouse) if group in text]
    receipt = erase(spark, warehouse, Name.of(CLUSTER, group=group, host=None), vacuum_days=0.0)
    assert [] == [name for name, text in contents(warehouse) if group in text]
    assert group not in json.dumps(receipt)
    assert but(standing, group) == silver(warehouse) == silver_again(warehouse)
    assert [1] == [row["source_offset"] for row in rows(warehouse, QUARANTINE)]
    (storm,) = rows(warehouse, ALERTS)
    assert storm["summary"].startswith("~")
    assert storm["summary"].endswith(" and other-group")
    (both,) = rows(warehouse, STORMS)
    assert [each["group_id"] for each in both["by_group"]] == both["group_ids"], "what is left of the name is one mark"
    assert both["by_group"][1] == {**both["by_group"][0], "group_id": "other-group"}
    done = {found["table"]: found for found in receipt["tables"]}
    for table in (COORDINATOR_RECORDS, OFFSET_COMMITS, GENERATIONS, GROUPS):
        assert done[table.name]["rows_deleted"] > 0
        assert done[table.name]["old_files_removed"] > 0
        assert done[table.name]["version_before"] < done[table.name]["version"]
    assert 1 == done["quality_results"]["rows_changed"]
    analysed = {f"_checkpoints/analyze/analysed{of}.json" for of in ("", "-advice")}
    assert analysed | {"_checkpoints/storms/shakes.parquet"} == set(receipt["caches_removed"])
    assert [] == receipt["still_named_in"]
    proof = hmac.new(receipt["salt"].encode(), group.encode(), hashlib.sha256).hexdigest()
    assert proof == receipt["hmac_sha256_of_name"]


def test_a_host_gives_way_to_a_mark_in_text_and_bytes_and_records_can_still_be_read(spark, recorded) -> None:
    host = next(row["client_host"] for row in rows(recorded, GENERATION_MEMBERS))
    standing = silver(recorded)
    receipt = erase(spark, recorded, Name.of(CLUSTER, group=None, host=host), vacuum_days=7.0)
    assert receipt["old_files_kept_until"][:10] > receipt["erased_at"][:10]
    after = silver(recorded)
    (mark,) = {row["client_host"] for row in rows(recorded, GENERATION_MEMBERS)}
    assert len(mark) == len(host)
    assert mark.startswith("/~")
    assert {} == differing({n: sorted(r.replace(host, mark) for r in found) for n, found in standing.items()}, after)
    assert all(mark.encode() in r["raw_value"] for r in rows(recorded, COORDINATOR_RECORDS) if mark in r["body"])
    assert after == silver_again(recorded)
    assert [name for name, text in contents(recorded) if host in text], "readers may still need the old files"
    receipt = erase(spark, recorded, Name.of(CLUSTER, group=None, host=host), vacuum_days=0.0)
    assert [] == [name for name, text in contents(recorded) if host in text]
    assert {0} == {table["rows_changed"] for table in receipt["tables"]}, "no row had the name any more"


def test_nothing_to_erase_leaves_every_version_as_it_is(spark, recorded) -> None:
    before = DeltaTable(table_path(recorded, COORDINATOR_EVENTS)).version()
    receipt = erase(spark, recorded, Name.of(CLUSTER, group="nobody", host=None), vacuum_days=7.0)
    assert [] == receipt["tables"]
    assert before == DeltaTable(table_path(recorded, COORDINATOR_EVENTS)).version()


def test_erasing_nothing_or_from_nowhere_is_one_sentence_and_exit_code_2(warehouse, capsys) -> None:
    for given, printed in ((["--group", ""], "Nothing to erase"), (["--host", "/10.1.2.3"], "has no tables")):
        assert 2 == main(["erase", "--cluster", CLUSTER, *given, "--warehouse", str(warehouse)])
        assert printed in capsys.readouterr().err
