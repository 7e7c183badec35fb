"""The queries on bronze: end offsets kept by the poll, and a group's commits around them."""

from __future__ import annotations

from dashboards.lake.lake import Parameter, moment
from dashboards.queries.gold_store import GoldStore
from dashboards.queries.lag import Behind, lag_checks
from dashboards.urlstate import Window

SAMPLES, RUNS = 5_000, 50_000
EARLIER_MS = 3_600_000
"""If a partition has no commit in this time before the range, its lag is unknown."""

END_OFFSETS = """
SELECT observed_at, body FROM admin_observations
WHERE cluster = $cluster AND kind = 'end_offsets' AND observed_at >= $start AND observed_at < $end
  AND split_part(subject, '#', 1) IN (
      SELECT topic FROM offset_commits
      WHERE cluster = $cluster AND group_id = $group AND last_commit_at >= $earlier AND first_commit_at < $end
  )
ORDER BY observed_at DESC LIMIT $cap
"""
"""The newest polls of the group's topics. `replay` adds `#` and a number to the topic in `subject`."""

COMMITTED = """
SELECT topic, partition, is_tombstone, last_offset, first_commit_at, before_last_commit_at, last_commit_at,
       first_committed_offset, before_last_committed_offset, last_committed_offset
FROM offset_commits
WHERE cluster = $cluster AND group_id = $group AND last_commit_at >= $earlier AND first_commit_at < $end
ORDER BY last_commit_at DESC LIMIT $cap
"""


class LagStore(GoldStore):
    """The queries on the lag of groups."""

    def behind(self, cluster: str, group: str, window: Window) -> list[Behind]:
        """Return the lag at each poll in the window; empty if the poll kept no end offsets of the group's topics."""
        asked: dict[str, Parameter] = {"cluster": cluster, "group": group, "end": moment(window.end)}
        asked["earlier"] = moment(window.start - EARLIER_MS)
        of_polls = asked | {"start": moment(window.start)}
        polls = self._lake.query(END_OFFSETS, ("admin_observations", "offset_commits"), SAMPLES, of_polls)
        if not polls.rows:
            return []
        return lag_checks(polls.rows, self._lake.query(COMMITTED, ("offset_commits",), RUNS, asked).rows)
