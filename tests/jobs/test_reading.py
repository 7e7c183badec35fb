"""Tables are read by Arrow's own file system, because a process that ends can abort within a Python one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import deltalake
import pytest
from pyarrow.fs import LocalFileSystem

from jobs.tables.silver_rows import newest
from pipelines.arrow_types import stored
from schemas.bronze import COVERAGE
from testing.alerts.rows import row

ROOT = Path(__file__).parents[2]
PYTHON_FILES = re.compile(r"\.to_pyarrow_(?:table|dataset)\(")


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = f"{tmp_path}/{COVERAGE.name}"
    for number in range(4):
        rows = [row(COVERAGE, cluster=name, source_partition=number) for name in ("a", "b/c")]
        deltalake.write_deltalake(path, stored(rows, COVERAGE), mode="append")
    deltalake.DeltaTable(path).delete("source_partition = 2")
    return path


def test_the_newest_version_is_read(table: str) -> None:
    found = newest(table, COVERAGE).to_table()
    assert sorted((name, n) for name in ("a", "b/c") for n in (0, 1, 3)) == sorted(
        zip(found["cluster"].to_pylist(), found["source_partition"].to_pylist(), strict=True)
    )


def test_no_file_is_opened_by_python_code(table: str) -> None:
    assert isinstance(newest(table, COVERAGE).filesystem, LocalFileSystem)


def test_no_job_reads_through_the_file_system_that_is_python_code() -> None:
    modules = [path for room in ("jobs", "dashboards", "pipelines") for path in (ROOT / room).rglob("*.py")]
    # `regroup serve` reads object stores so. It ends without the interpreter's shutdown, in which a process can abort;
    # `test_pages_that_end_while_they_read_an_object_store_end_normally` shows it.
    assert ["store_files.py"] == [path.name for path in modules if PYTHON_FILES.search(path.read_text("utf-8"))]


def test_a_process_that_ends_right_after_it_read_ends_normally(table: str) -> None:
    program = (
        "import sys; from jobs.tables.silver_rows import newest; from schemas.bronze import COVERAGE; "
        "print(newest(sys.argv[1], COVERAGE).to_table().num_rows)"
    )
    command = [sys.executable, "-c", program, table]
    runs = [subprocess.run(command, check=False, capture_output=True, text=True) for _ in range(3)]
    assert [(0, "6\n", "")] * 3 == [(run.returncode, run.stdout, run.stderr) for run in runs]
