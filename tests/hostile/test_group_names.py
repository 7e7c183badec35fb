"""Every client chooses the id of its group: any text is kept as it is, through bronze, silver and gold."""

from __future__ import annotations

from jobs.analyze import analyze
from jobs.config.settings import Settings
from jobs.tables.create_tables import create_tables
from schemas.bronze import BRONZE
from schemas.gold import GROUP_HEALTH
from schemas.silver import GENERATIONS, GROUPS, REASSIGNMENT_TABLES, SILVER
from tests.hostile.filling import add, rows
from tests.hostile.records import commit, generation, partitions

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
        add(None, settings, pairs, first_offset=number * len(pairs))
    assert len(NAMES) == analyze(None, settings)
    for table in (GROUPS, GENERATIONS, GROUP_HEALTH):
        assert set(NAMES) == {row["group_id"] for row in rows(warehouse, table)}
