"""What DuckDB keeps of queries and files does not grow for as long as a process runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURE = """
import gc, json, sys
from itertools import count
from pathlib import Path

import pyarrow as pa

from dashboards.lake import lake as lakes
from dashboards.lake.lake import LocalLake
from jobs.tables import engine
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.disk.data_file import write
from jobs.tables.new_rows import NewRows
from pipelines.arrow_types import schema_of
from schemas.silver import GROUPS
from testing.ageing.inside.sitecustomize import found


def used():
    gc.collect()
    return found()["malloc used"]


def after(times, act):
    # At the same number of calls after a replacement, so that both figures include the same number of queries.
    for _ in range(times):
        act()
    first = used()
    for _ in range(3 * times):
        act()
    return used() - first


warehouse, numbers = Path(sys.argv[1]), count()
create_tables(None, warehouse, [GROUPS])
names = pa.array(["a", "b"])
rows = pa.table({f.name: names if f.name in GROUPS.key else pa.nulls(2, f.type) for f in schema_of(GROUPS)})
rows = rows.cast(schema_of(GROUPS))
for _ in range(20):
    append(None, warehouse, NewRows(table=GROUPS, few=rows))
lake = LocalLake(warehouse, keeps_files=False)


def asked():
    sql = "SELECT group_id, count(*) FROM groups WHERE group_id > $at GROUP BY ALL ORDER BY ALL LIMIT $cap"
    lake.query(sql, ["groups"], 1, {"at": str(next(numbers))})


def replaced():
    file = str(warehouse / write(warehouse, rows).name)
    with engine.connect() as connection:
        engine.show_files(connection, "found", GROUPS, [file])
        connection.sql("FROM found").to_arrow_table()
    Path(file).unlink()


lakes.RENEWED_AFTER = engine.RENEWED_AFTER = int(sys.argv[2])
engine.KEPT_FILES, engine.GONE_AFTER = int(sys.argv[2]) // 2, int(sys.argv[2]) // 4
print(json.dumps([after(60, asked), after(60, replaced)]))
"""


def grown(folder: Path, renewed_after: int) -> list[float]:
    """Return by how many MB malloc's blocks in use grow with 180 queries of a lake, and with 180 files of jobs."""
    folder.mkdir()
    command = [sys.executable, "-P", "-c", MEASURE, str(folder), str(renewed_after)]
    known = os.environ | {"PYTHONPATH": str(ROOT), "MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    found: list[float] = json.loads(subprocess.run(command, env=known, capture_output=True, check=True).stdout)
    return found


def test_memory_in_use_does_not_grow_with_queries_and_files(tmp_path) -> None:
    of_queries, of_files = grown(tmp_path / "replaced", 30)
    queries_kept, files_kept = grown(tmp_path / "kept", 1_000_000)
    assert of_queries < queries_kept / 2, "MB"
    assert of_files < files_kept / 2, "MB"


RETURNED = """
import json, time

from jobs.tables.engine import connect


def anonymous():
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("Pss_Anon:"))


with connect() as connection:
    connection.execute("SELECT 1").fetchall()
    before = anonymous()
    connection.execute(
        "SELECT count(*) FROM (SELECT CAST(i AS VARCHAR) AS k, list(i) FROM range(1000000) AS t(i) GROUP BY k)"
    ).fetchall()
most = after = anonymous() - before
until = time.monotonic() + 60
while after > most / 3 and time.monotonic() < until:
    time.sleep(0.2)
    after = anonymous() - before
print(json.dumps([most, after]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_of_a_large_query_is_returned_while_no_query_runs() -> None:
    known = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-P", "-c", RETURNED], env=known, capture_output=True, check=True)
    most, after = json.loads(ended.stdout)
    assert most > 20, "MB"
    assert after <= most / 3, "MB"
