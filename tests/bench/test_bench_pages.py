"""`bench pages` requests every page and reports for each whether it stayed within its budget."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jobs.cli import main

pytestmark = pytest.mark.slow


def test_every_page_is_measured_against_its_budget(capsys, tmp_path):
    few = ["--groups", "60", "--days", "2", "--requests", "1", "--readers", "3", "--seconds", "0.5"]
    command = ["bench", "pages", "--folder", str(tmp_path), *few]
    assert main([*command, "--no-browser"]) in (0, 1)
    assert "made the history" in capsys.readouterr().out
    # A process of its own: Playwright's synchronous interface runs once per process, and other tests may hold it open.
    own = [sys.executable, "-P", "-m", "jobs.cli", *command]
    ended = subprocess.run(own, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    printed = ended.stdout
    assert "60 groups" in printed
    lines = [line for line in printed.splitlines() if line.endswith(("  met", "  NOT MET"))]
    for name in (
        "fleet 24 h",
        "group 24 h",
        "zoom",
        "rebalance",
        "storms",
        "advice",
        "reassignments",
        "health",
        "search",
    ):
        assert any(line.startswith(f"server, {name}") for line in lines), name
    for name in ("largest figure,", "largest page", "3 readers at once", "memory of the pages"):
        assert any(line.startswith(name) for line in lines), name
    assert "first useful paint" in printed, "in a browser, unless there is none"
    assert not any("0 of 0" in line or "p95 0 ms, median 0 ms, processor" in line for line in lines)
