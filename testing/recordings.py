"""Where the recorded data of the tests is: captures of real clusters, records of real brokers, and log lines."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
CAPTURES = TESTS / "captures"
GOLDEN = TESTS / "decode" / "golden"
WORDINGS = TESTS / "coordinator_log" / "golden" / "wordings.jsonl"
"""A log line of every wording."""
