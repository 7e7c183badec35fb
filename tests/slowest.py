"""The slowest modules, which `pytest -n` starts first: what begins last runs while the other worker has nothing left."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent

SECONDS = {
    "jobs/tables/test_elsewhere.py": 250,
    "setup/test_wheel.py": 250,
    "ui/lake/test_databricks_sql.py": 140,
    "jobs/test_replay_without_spark.py": 135,
    "faults/test_ingest.py": 125,
    "source/test_stream.py": 110,
    "lab/test_scenarios.py": 110,
    "ui/pages/test_hostile.py": 100,
    "jobs/test_same_tables.py": 100,
    "ui/lake/test_readers.py": 95,
    "jobs/test_create_tables.py": 90,
    "maintain/test_erase_elsewhere.py": 100,
    "ui/browser/test_accessibility.py": 90,
    "silver/resuming/test_batches_of_loops.py": 80,
    "source/test_first_read.py": 75,
    "ui/browser/test_browser.py": 75,
    "security/test_broker_rights.py": 70,
    "jobs/tables/test_copy_tables.py": 70,
    "maintain/test_maintain.py": 70,
    "upgrades/test_older.py": 70,
    "quality/test_checks.py": 70,
    "jobs/test_append.py": 65,
    "ui/browser/test_no_way_out.py": 65,
    "silver/test_inputs.py": 55,
    "gold/test_analyze.py": 50,
    "maintain/test_erase.py": 50,
    "silver/commits/test_pending_first_commits.py": 50,
    "ui/browser/test_interactions.py": 50,
    "lab/test_clients.py": 45,
    "ui/browser/test_interactions_live.py": 40,
    "silver/resuming/test_carried_epochs.py": 40,
    "hostile/test_captures.py": 40,
    "ui/lake/test_object_store.py": 40,
    "jobs/test_first_build.py": 35,
    "silver/resuming/test_carried_points.py": 35,
    "hostile/test_group_limits.py": 35,
    "ui/lake/test_file_sums.py": 30,
    "source/test_hostile_events.py": 30,
    "jobs/test_replace.py": 30,
    "jobs/test_doctor.py": 30,
    "ui/browser/test_interactions_share.py": 30,
    "silver/resuming/test_folding.py": 25,
    "bench/test_bench_pages.py": 25,
    "reassignments/test_poll.py": 25,
    "jobs/test_requeue.py": 25,
    "lab/test_lab.py": 25,
    "ui/lake/test_file_index.py": 25,
    "ui/pages/test_advice.py": 25,
    "ui/pages/test_cluster_storms.py": 25,
    "ui/browser/test_questions.py": 25,
    "ui/browser/test_still.py": 25,
    "alerts/test_killed.py": 20,
    "reassignments/test_real_cluster.py": 20,
    "jobs/test_client_hosts.py": 20,
    "lab/test_broker.py": 20,
    "fuzz/test_hostile_growth.py": 20,
    "ui/pages/test_storms.py": 20,
    "ui/queries/test_store.py": 20,
}
"""Module below this folder → seconds of its tests beside another worker, on two cores. Only their order counts."""


def slowest_first(paths: Iterable[Path]) -> list[int]:
    """The positions of these modules' tests, the slowest module's first; others keep their order, behind these."""
    seconds = [SECONDS.get(os.path.relpath(path, HERE), 0) for path in paths]
    return sorted(range(len(seconds)), key=lambda n: -seconds[n])
