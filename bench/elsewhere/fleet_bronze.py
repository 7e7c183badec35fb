"""Bronze rows of a fleet of any size: the decoded records of a few groups, copied under other names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa

from pipelines.bronze_batch import Records, bronze
from pipelines.decoding.source_record import SourceRecord
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.tables import Table
from testing.records.binary import group_key, group_metadata, offset_commit, offset_commit_key

SLOTS = 48
"""Groups that are decoded, half an hour apart; the others are copies of them."""

STARTS = 5
"""Number of times that all processes of a calm group start."""

APART, CHURNING = 240, range(0, 40, 2)
"""Minutes between two starts of a calm group, and those after its first start at which a churning group starts."""

PARTITIONS = 10
BEGIN_MS, MINUTE_MS = 1_790_000_000_000, 60_000
TABLES = (COORDINATOR_RECORDS, OFFSET_COMMITS)

COPIES = """
COPY (
    SELECT calm.* REPLACE ({offsets}, group_id || '-' || copy AS group_id)
    FROM calm CROSS JOIN range({copies}) copies(copy)
    UNION ALL BY NAME FROM churning
) TO '{file}' (COMPRESSION zstd, ROW_GROUP_SIZE 100000)
"""


def write_bronze(folder: Path, groups: int, churning: int, starts: int = STARTS) -> dict[Table, Path]:
    """Write one Parquet file per bronze table into `folder`; return the files.

    Each group has three members and ten partitions that commit after each of its `starts`, four hours apart. `churning`
    further groups start twenty times within 40 minutes.
    """
    minutes = range(0, starts * APART, APART)
    calm = _decoded({f"calm-{slot:02d}": (slot, minutes) for slot in range(SLOTS)})
    others = _decoded({f"churning-{n:04d}": (SLOTS + n % SLOTS, CHURNING) for n in range(churning)})
    files = {}
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for table in TABLES:
            rows = pa.Table.from_struct_array(calm[table.name])
            engine.register("calm", rows)
            engine.register("churning", pa.Table.from_struct_array(others[table.name]))
            names = [name for name in rows.column_names if name.endswith("_offset") and "committed" not in name]
            offsets = ", ".join(f"{name} + copy * 1000 AS {name}" for name in names)
            files[table] = folder / f"{table.name}.parquet"
            engine.execute(COPIES.format(offsets=offsets, copies=-(-groups // SLOTS), file=files[table]))
    return files


def _decoded(groups: dict[str, tuple[int, range]]) -> dict[str, pa.StructArray]:
    """Return the bronze rows of groups, given the slot and the minutes of the starts of each."""
    found = [record for name, (slot, minutes) in groups.items() for record in _records(name, slot, minutes)]
    placed = (SourceRecord(partition, at, *rest) for at, (partition, rest) in enumerate(found))
    return bronze(Records.of(placed, log_epoch=0), cluster="fleet")


def _records(group: str, slot: int, minutes: range) -> Iterator[tuple[int, tuple[int, bytes, bytes]]]:
    """Yield the partition; and time in ms, key and value."""
    for generation, minute in enumerate(minutes, 1):
        at = BEGIN_MS + (slot % SLOTS * 30 + minute) * MINUTE_MS
        yield slot, (at, group_key(group), group_metadata(group, generation, at))
        for partition in range(PARTITIONS):
            value = offset_commit(generation * 100, at + 5_000)
            yield slot, (at + 5_000, offset_commit_key(group, "settlement-events", partition), value)
