"""The slowest modules, which `pytest -n` starts first: what begins last runs while the other worker has nothing left."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent

SECONDS = {
    "ui/pages/test_hostile.py": 180,
    "ui/lake/test_databricks_sql.py": 150,
    "jobs/test_replay_without_spark.py": 135,
    "setup/test_wheel.py": 130,
    "source/test_stream.py": 110,
    "lab/test_scenarios.py": 110,
    "jobs/test_same_tables.py": 100,
    "jobs/test_create_tables.py": 90,
    "ui/browser/test_accessibility.py": 85,
    "faults/test_ingest.py": 80,
    "silver/test_inputs.py": 75,
    "source/test_first_read.py": 75,
    "security/test_broker_rights.py": 70,
    "maintain/test_maintain.py": 70,
    "ui/browser/test_browser.py": 65,
    "ui/lake/test_file_sums.py": 60,
    "gold/test_analyze.py": 60,
    "silver/resuming/test_batches_of_loops.py": 60,
    "ui/lake/test_readers.py": 60,
    "ui/browser/test_interactions_live.py": 55,
    "maintain/test_erase.py": 50,
    "upgrades/test_older.py": 50,
    "silver/commits/test_pending_first_commits.py": 50,
    "lab/test_clients.py": 45,
    "silver/resuming/test_folding.py": 35,
    "source/test_hostile_events.py": 30,
    "jobs/test_replace.py": 30,
    "jobs/test_doctor.py": 30,
    "bench/test_bench_pages.py": 25,
    "reassignments/test_poll.py": 25,
    "quality/test_checks.py": 25,
    "jobs/test_requeue.py": 25,
    "lab/test_lab.py": 25,
    "alerts/test_killed.py": 20,
    "reassignments/test_real_cluster.py": 20,
    "jobs/test_client_hosts.py": 20,
}
"""Module below this folder → seconds of its tests beside another worker, on two cores. Only their order counts."""


def slowest_first(paths: Iterable[Path]) -> list[int]:
    """The positions of these modules' tests, the slowest module's first; others keep their order, behind these."""
    seconds = [SECONDS.get(os.path.relpath(path, HERE), 0) for path in paths]
    return sorted(range(len(seconds)), key=lambda n: -seconds[n])
