"""The aged day measures every process of a tree from outside and from inside, and distinguishes growth from peaks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

from deltalake import DeltaTable

from testing.ageing.commits import GROUP_COUNT, rows_of, written
from testing.ageing.curves import LEAST, Sample, growth, slope, verdict, write
from testing.ageing.inside.sitecustomize import blocks_by_line
from testing.ageing.lines import grown, report
from testing.ageing.processes import environment, role, sample

ROOT = Path(__file__).parents[2]
NOW = 1_790_000_000_000
WORK = """
import os, sys, time
from pathlib import Path
import pyarrow as pa
from dashboards.lake.lake import LocalLake
from jobs.tables.engine import connect

lake = LocalLake(sys.argv[1])
rows = pa.array(range(1_000_000))
with connect() as engine:
    engine.execute("SELECT 1")
if os.fork() == 0:
    time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""


def until(found, seconds=300):
    end = time.monotonic() + seconds
    while not (out := found()):
        assert time.monotonic() < end
        time.sleep(0.2)
    return out


def test_a_process_and_its_fork_are_weighed_from_outside_and_from_within(tmp_path) -> None:
    inside = tmp_path / "inside"
    known = environment(inside, {**os.environ, "PYTHONPATH": str(ROOT)})
    command = [sys.executable, "-P", "-c", WORK, str(tmp_path)]
    with subprocess.Popen(command, env=known, stdout=subprocess.PIPE, process_group=0) as process:
        try:
            assert process.stdout is not None
            assert b"ready\n" == process.stdout.readline()

            def whole():
                (figures,) = sample(process.pid, inside).values()
                return figures if figures.get("duckdb instances") == 4 else None

            figures = until(whole)
        finally:
            os.killpg(process.pid, 9)
    assert 2 == figures["processes"]
    assert figures["pss"] >= figures["pss anon"] > 20
    assert figures["malloc used"] > 8
    assert figures["arrow"] >= 16
    assert figures["python blocks"] > 100_000
    assert figures["threads"] >= 4
    assert {"malloc free", "duckdb", "open files", "pss file"} <= figures.keys()


def test_processes_are_named_by_what_they_do() -> None:
    daemon = ["python", "-m", "jobs.spark.worker_daemon", "pyspark.worker"]
    assert "up" == role(["python", "-P", "-m", "jobs.cli", "up", "--port", "0"], [])
    assert "up" == role(["python", "-P", "-m", "testing.ageing.cli", "up", "--port", "0"], [])
    assert "found_as_of" == role(
        ["python", "-P", "-m", "jobs.processes.worker_process", "jobs.gold", "found_as_of"], []
    )
    assert "spark daemon" == role(daemon, ["java"])
    assert "spark worker" == role(daemon, daemon)
    assert "dashboards.app" == role(["python", "-P", "-m", "dashboards.app", "--port", "0"], [])
    assert "supervisor" == role(["python", "-I", "processes.py", "15", "python", "-m", "dashboards.app"], [])
    assert "java" == role(["/usr/bin/java", "-m", "x"], [])


def samples(sizes):
    step = 3 * LEAST / len(sizes)
    return [Sample(10.0 * n, round(step * n), {"up": {"pss anon": size}}, {}) for n, size in enumerate(sizes, 1)]


def test_growth_is_told_from_warm_up_and_from_single_peaks(tmp_path) -> None:
    flat = samples([100 + n for n in range(20)] + [120] * 20 + [400] * 3 + [120] * 17)
    assert 0 == growth(flat, "up", "pss anon")
    assert "does not grow" in verdict("up", growth(flat, "up", "pss anon"))
    rising = samples([100 + n for n in range(60)])
    found = growth(rising, "up", "pss anon")
    assert found is not None
    assert abs(found - 100) < 2
    assert "grows by 100 MB per 1,000 batches" in verdict("up", found)
    assert growth(rising[:20], "up", "pss anon") is None
    assert growth(rising, "java", "pss anon") is None
    assert "too few" in verdict("java", None)
    write(rising, tmp_path / "curves")
    assert 61 == len((tmp_path / "curves.csv").read_text().splitlines())
    assert slope([]) is None


def test_lines_whose_blocks_grow_are_told_from_those_that_stay(tmp_path) -> None:
    tracemalloc.start()
    try:
        before = blocks_by_line()
        kept = [object() for _ in range(1_000)]
        after = blocks_by_line()
    finally:
        tracemalloc.stop()
    (line,) = [each for each in after if each.startswith("tests/bench/test_aged_day.py:") and after[each] >= len(kept)]
    assert line not in before
    assert (line, 0, after[line]) == grown([before, after])[0]
    assert [("a:1", 5, 9)] == grown([{"a:1": 1}, {"a:1": 5, "b:2": 7}, {"a:1": 9, "b:2": 7}])
    assert [] == grown([after])
    (tmp_path / "7.lines").write_text('{"a:1": 1}\n{"a:1": 3}\n{"a:1"', encoding="utf-8")
    assert ["up: 1 to 3 blocks of Python (+2) from a:1"] == report(tmp_path, {7: "up", 8: "serve"})


def test_batches_of_made_up_commits_have_rows_of_their_own() -> None:
    rows = [written(rows_of(number, NOW + number)) for number in (0, 1, GROUP_COUNT)]
    for table in rows[0]:
        keys = [tuple(row[name] for name in table.key) for batch in rows for row in batch[table].to_pylist()]
        if table.name != "groups":
            assert len(keys) == len(set(keys)), table.name
    assert {batch[table].num_rows for batch in rows for table in batch if table.name == "generations"} == {2}


def test_a_process_that_writes_made_up_commits_says_when_each_is_there(tmp_path) -> None:
    log = tmp_path / "commits.log"
    command = [sys.executable, "-P", "-m", "testing.ageing.commits", str(tmp_path / "warehouse")]
    with (
        log.open("wb") as sink,
        subprocess.Popen(command, stdout=sink, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process,
    ):
        try:
            until(lambda: "Batch 2 is in silver" in log.read_text())
        finally:
            process.kill()
    assert (tmp_path / "warehouse" / "generations").is_dir()


def test_tables_of_an_aged_day_have_short_logs(tmp_path) -> None:
    script = """
import sys
import testing.ageing.cli
from jobs.tables.create_tables import create_tables
from schemas.silver import GROUPS
create_tables(None, sys.argv[1], (GROUPS,))
"""
    command = [sys.executable, "-P", "-c", script, str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    properties = DeltaTable(tmp_path / "groups").metadata().configuration
    assert "interval 10 minutes" == properties["delta.logRetentionDuration"]
