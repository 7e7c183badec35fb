"""The cache of stops that wait for a first commit gives the same results as the table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from jobs.build import rebuild_all
from jobs.config.settings import Settings
from jobs.replay import Capture, replay, split
from jobs.retention.compact import compact
from jobs.silver import pending_first_commits
from jobs.silver.inputs import SilverInputs
from jobs.tables.create_tables import create_tables
from schemas.bronze import BRONZE
from schemas.silver import SILVER, STALLS
from testing.recordings import CAPTURES
from tests.jobs.conftest import CLUSTER
from tests.maintain.test_compact import Here

BATCHES = 24


def described(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("name", ["eager_churn", "rolling_restart", "migration"])
def test_every_batch_gets_the_same_answer_of_memory_and_table(spark, warehouse, monkeypatch, name) -> None:
    """Files are compacted meanwhile, and once another process rebuilds silver."""
    capture, settings = Capture(CAPTURES / name), Settings(warehouse=warehouse)
    create_tables(spark, warehouse, (*BRONZE, *SILVER))
    asked, learn, remembered = SilverInputs.committing, pending_first_commits.PendingFirstCommits.learn, []

    def learnt(self, warehouse, groups) -> None:
        before = self.groups.num_rows, self.points is not None and self.points.num_rows
        learn(self, warehouse, groups)
        remembered.append(before)

    def twice(self):
        known = asked(self)
        memory = pending_first_commits._known.pop(warehouse, None)
        anew = asked(self)
        if memory is not None:
            pending_first_commits._known[warehouse] = memory
        assert [described(rows) for rows in known] == [described(rows) for rows in anew]
        return known

    monkeypatch.setattr(SilverInputs, "committing", twice)
    monkeypatch.setattr(pending_first_commits.PendingFirstCommits, "learn", learnt)
    for number, batch in enumerate(split(capture, ["offsets"], BATCHES, None), 1):
        replay(spark, settings, CLUSTER, capture.meta, batch)
        if number % 6 == 0:
            compact(warehouse, STALLS, Here())
        if number == BATCHES // 2:
            rebuild_all(spark, settings)
    assert any(groups for groups, _ in remembered)
    assert name == "rolling_restart" or any(points for _, points in remembered)
