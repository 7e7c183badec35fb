"""Every client chooses the id of its group: any text is kept as it is, through bronze, silver and gold."""

from __future__ import annotations

from deltalake import DeltaTable

from jobs.analyze import analyze
from jobs.build import affected_groups, rebuild_affected
from jobs.config.settings import Settings
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from pipelines.bronze_batch import bronze_rows
from schemas.bronze import BRONZE, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.gold import GROUP_HEALTH
from schemas.silver import GENERATIONS, GROUPS, REASSIGNMENT_TABLES, SILVER
from tests.hostile.records import commit, generation, partitions, source_records

NAMES = [
    "a\u2028b",
    "\u2029",
    "\x85",
    "\x1c\x0b\x0c",
    "a\nb\r",
    "\\",
    '"',
    "'; DROP TABLE groups --",
    "%41",
    "\u202e",
    "😀",
    "\x00",
]


def test_groups_of_any_names_are_built_and_analyzed(warehouse) -> None:
    settings = Settings(warehouse=warehouse)
    create_tables(None, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES))
    for number in (1, 2):
        pairs = [pair for name in NAMES for pair in (generation(number, partitions([0]), group=name), commit(name))]
        records = source_records(pairs, first_offset=number * len(pairs))
        rows = bronze_rows(records, cluster="c", log_epoch=0)
        new = {table: NewRows.of(table, rows[table.name]) for table in (COORDINATOR_RECORDS, OFFSET_COMMITS)}
        for each in new.values():
            append(None, warehouse, each)
        rebuild_affected(None, settings, affected_groups(new))
    assert len(NAMES) == analyze(None, settings)
    for table in (GROUPS, GENERATIONS, GROUP_HEALTH):
        found = DeltaTable(table_path(warehouse, table)).to_pyarrow_table()["group_id"].to_pylist()
        assert set(NAMES) == set(found)
