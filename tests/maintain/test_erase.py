"""After an erase, no file contains the name, everything else is left, and the receipt does not contain the name."""

from __future__ import annotations

import hashlib
import hmac
import json

from deltalake import DeltaTable

from jobs.cli import main
from jobs.erase import erase
from jobs.gold.analyze_part import analysed_path
from jobs.retention.erased_name import Name
from jobs.tables.paths import table_path
from jobs.tables.tables import FolderTables
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from schemas.gold import ALERTS, DEPLOYS, STORMS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS
from tests.jobs.conftest import differing, silver
from tests.maintain.conftest import CLUSTER, contents, rows, silver_again
from tests.whole_rows import whole


def but(rows: dict[str, list[str]], group: str) -> dict[str, list[str]]:
    return {name: [row for row in found if f"'group_id': '{group}'" not in row] for name, found in rows.items()}


def test_a_group_is_in_no_file_any_more_and_the_rows_of_others_stay(spark, described) -> None:
    warehouse, group = described
    standing = silver(warehouse)
    unfinished = analysed_path(warehouse).with_name("analysed.json.77.tmp")
    unfinished.write_text(group, encoding="utf-8")
    assert [name for name, text in contents(warehouse) if group in text]
    receipt = erase(spark, warehouse, Name.of(CLUSTER, group=group, host=None), vacuum_days=0.0)
    assert [] == [name for name, text in contents(warehouse) if group in text]
    assert group not in json.dumps(receipt)
    assert but(standing, group) == silver(warehouse) == silver_again(warehouse)
    assert [1] == [row["source_offset"] for row in rows(warehouse, QUARANTINE)]
    (storm,) = rows(warehouse, ALERTS)
    assert storm["summary"].startswith("~")
    assert storm["summary"].endswith(" and other-group")
    (deploy,) = rows(warehouse, DEPLOYS)
    assert (deploy["group_id"], deploy["text"][:7]) == ("other-group", "v2 of ~")
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
    analysed |= {f"_checkpoints/analyze/{unfinished.name}", "_checkpoints/storms/shakes.parquet"}
    assert analysed == set(receipt["caches_removed"])
    assert [] == receipt["still_named_in"]
    proof = hmac.new(receipt["salt"].encode(), group.encode(), hashlib.sha256).hexdigest()
    assert proof == receipt["hmac_sha256_of_name"]


def test_a_host_gives_way_to_a_mark_in_text_and_bytes_and_records_can_still_be_read(spark, recorded) -> None:
    host = next(row["client_host"] for row in rows(recorded, GENERATION_MEMBERS))
    stayed = {"cluster": CLUSTER, "group_id": "g", "started_at": 1, "evidence": "inferred", "slowest_host": host}
    FolderTables(recorded).append(DEPLOYS, [whole(stayed | {"not_back_hosts": [host]}, DEPLOYS)])
    standing = silver(recorded)
    receipt = erase(spark, recorded, Name.of(CLUSTER, group=None, host=host), vacuum_days=7.0)
    assert receipt["old_files_kept_until"][:10] > receipt["erased_at"][:10]
    after = silver(recorded)
    (mark,) = {row["client_host"] for row in rows(recorded, GENERATION_MEMBERS)}
    (deploy,) = rows(recorded, DEPLOYS)
    assert [deploy["slowest_host"]] == deploy["not_back_hosts"] == [mark]
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
