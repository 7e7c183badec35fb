"""Processes do without pandas, which pyarrow would load with its first array."""

from __future__ import annotations

import subprocess
import sys

import pytest

FIRST_ARRAY = "import sys, pyarrow; pyarrow.array([1]); print('pandas' in sys.modules)"


def _said(code: str, *arguments: str) -> str:
    command = [sys.executable, "-P", "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_arrow_makes_arrays_without() -> None:
    assert _said(FIRST_ARRAY) == "True", "nothing is gained any more: remove what keeps pandas away"
    assert (
        _said(f"from dashboards.lake.without_pandas import without_pandas; without_pandas(); {FIRST_ARRAY}") == "False"
    )


@pytest.mark.parametrize("module", ["dashboards.app", "jobs.pages", "jobs.serve"])
def test_no_module_of_the_pages_loads_it_before_they_keep_it_away(module) -> None:
    assert _said(f"import sys, {module}; print('pandas' in sys.modules)") == "False"


def test_spark_gets_it_when_it_insists_on_it() -> None:
    code = (
        "from dashboards.lake.without_pandas import without_pandas; without_pandas(but_for_spark=True); "
        f"{FIRST_ARRAY}; from pyspark.sql.pandas.utils import require_minimum_pandas_version as check; "
        "check(); print('pandas' in sys.modules)"
    )
    assert _said(code).split() == ["False", "True"]
