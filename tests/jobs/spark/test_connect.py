"""Tables that have names, through a Spark Connect server: tests of tables elsewhere once more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from testing.connect.server import connect_server

ROOT = Path(__file__).parents[3]
ELSEWHERE, ERASED = "tests/jobs/tables/test_elsewhere.py", "tests/maintain/test_erase_elsewhere.py"
TESTS = (
    f"{ELSEWHERE}::test_the_rows_are_those_of_a_folder_in_any_batches_and_after_a_rebuild",
    f"{ELSEWHERE}::test_a_repeated_write_happens_once_and_overwriting_keeps_the_clustering[schema]",
    f"{ELSEWHERE}::test_an_older_table_gets_new_columns_and_a_newer_one_is_refused[schema]",
    f"{ERASED}::test_a_group_is_in_no_file_any_more_though_the_erasure_was_ended_or_refused",
    f"{ERASED}::test_a_host_is_in_no_file_any_more_and_no_row_is_lost",
)
"""All others pass as well, but add little to the scheduled jobs in `tests/setup/test_wheel.py`."""


def test_the_contract_of_tables_elsewhere_holds_for_names_through_spark_connect(tmp_path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = ["-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider"]
    with connect_server(tmp_path / "server", ROOT) as address:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "pytest", *options, *TESTS],
            cwd=ROOT,
            env=environment | {"PYTHONPATH": str(ROOT), "SPARK_REMOTE": address},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout
    assert f"{len(TESTS)} passed" in ended.stdout
