"""The slowest modules, which `pytest -n` starts first: a module that begins last runs while the other worker idles."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent

SECONDS = {
    "setup/test_wheel.py": 250,
    "jobs/tables/test_elsewhere.py": 240,
    "jobs/spark/test_connect.py": 190,
    "ui/lake/test_databricks_sql.py": 180,
    "ui/lake/test_readers.py": 165,
    "jobs/test_same_tables.py": 140,
    "lab/test_scenarios.py": 120,
    "ui/browser/test_accessibility.py": 95,
    "source/test_stream.py": 90,
    "jobs/test_replay_without_spark.py": 85,
    "jobs/s3/test_s3_jobs.py": 80,
    "maintain/test_erase_elsewhere.py": 85,
    "lab/test_clients.py": 80,
    "ui/pages/test_hostile.py": 80,
    "faults/test_ingest.py": 65,
    "jobs/s3/test_s3_address.py": 65,
    "jobs/tables/test_copy_tables.py": 65,
    "silver/resuming/test_batches_of_loops.py": 65,
    "ui/browser/test_browser.py": 65,
    "fuzz/test_hostile_growth.py": 50,
    "gold/test_analyze.py": 50,
    "maintain/test_erase.py": 50,
    "quality/test_checks.py": 50,
    "security/test_broker_rights.py": 50,
    "alerts/test_facts_by_spark.py": 45,
    "reassignments/test_poll.py": 45,
    "source/test_first_read.py": 45,
    "ui/browser/test_interactions_live.py": 45,
    "ui/browser/test_no_way_out.py": 45,
    "jobs/test_append.py": 40,
    "jobs/test_create_tables.py": 40,
    "silver/commits/test_pending_first_commits.py": 40,
    "maintain/test_maintain.py": 35,
    "silver/test_inputs.py": 35,
    "ui/browser/test_interactions.py": 35,
    "upgrades/test_older.py": 35,
    "gold/test_gold_elsewhere.py": 30,
    "ui/lake/test_file_sums.py": 30,
    "ui/web/test_half_open.py": 30,
    "hostile/test_captures.py": 25,
    "jobs/test_doctor.py": 25,
    "alerts/test_slow_receivers.py": 20,
    "alerts/weekly/test_weekly_reports.py": 20,
    "jobs/test_first_build.py": 20,
    "kubernetes/test_capture.py": 20,
    "silver/resuming/test_carried_epochs.py": 20,
    "silver/resuming/test_carried_points.py": 20,
    "source/test_decode.py": 20,
    "source/test_hostile_events.py": 20,
    "source/test_ranges.py": 20,
    "ui/browser/test_interactions_share.py": 20,
    "ui/lake/test_object_store.py": 20,
}
"""Module below this folder → seconds of its tests next to another worker, on two cores. Only the order counts."""


def slowest_first(paths: Iterable[Path]) -> list[int]:
    """Return the positions of the tests, the slowest module's first; other tests keep their order, after these."""
    seconds = [SECONDS.get(os.path.relpath(path, HERE), 0) for path in paths]
    return sorted(range(len(seconds)), key=lambda n: -seconds[n])
