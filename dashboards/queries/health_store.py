"""The queries of the Health page: sources, gaps, quarantine, refused calls, job runs and failed quality rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboards.lake.lake import Lake, LakeError, Row, Rows, moment
from dashboards.lake.quality_results import newest_results

SOURCE_ROWS = 500
GAP_ROWS = 200
REASON_ROWS = 200
REFUSAL_ROWS = 50
RUN_ROWS = 200
RUN_DAYS = 90
LIMIT_ROWS = 200
PATTERN_ROWS = 50
DAY_MS = 86_400_000

SOURCES = """
SELECT cluster, source, count(DISTINCT source_partition) AS partitions,
       min(from_at) FILTER (WHERE NOT is_gap) AS first_at, max(to_at) FILTER (WHERE NOT is_gap) AS last_at,
       CAST(coalesce(sum(records) FILTER (WHERE NOT is_gap), 0) AS BIGINT) AS records,
       CAST(coalesce(sum(skipped) FILTER (WHERE NOT is_gap), 0) AS BIGINT) AS skipped,
       CAST(coalesce(sum(quarantined) FILTER (WHERE NOT is_gap), 0) AS BIGINT) AS quarantined,
       count(*) FILTER (WHERE is_gap) AS gaps
FROM coverage GROUP BY cluster, source ORDER BY cluster, source LIMIT $cap
"""

GAPS = """
SELECT cluster, source, source_partition, log_epoch, from_offset, to_offset, gap_reason,
       count(*) OVER () AS total
FROM coverage WHERE is_gap
ORDER BY cluster, source, log_epoch DESC, from_offset DESC, source_partition LIMIT $cap
"""

REASONS = """
SELECT cluster, source, reason, count(*) AS records, max(record_at) AS last_at,
       max_by(detail, source_offset) AS detail
FROM quarantine WHERE reason NOT IN ('unknown_layout', 'unknown_wording')
GROUP BY cluster, source, reason ORDER BY records DESC, cluster, source, reason LIMIT $cap
"""

UNREAD = """
SELECT cluster, source, reason, source_partition, detail, lines, position FROM (
    SELECT cluster, source, reason, source_partition, detail,
           CAST(sum(coalesce(lines, 1)) OVER (PARTITION BY cluster, source, reason) AS BIGINT) AS lines,
           row_number() OVER (
               PARTITION BY cluster, source, reason ORDER BY source_offset DESC, source_partition, log_epoch
           ) AS position
    FROM quarantine WHERE reason IN ('unknown_layout', 'unknown_wording')
) kept
WHERE position <= 3 ORDER BY lines DESC, cluster, source, reason, position LIMIT $cap
"""

REFUSALS = """
SELECT cluster, json_extract_string(body, '$.call') AS call, json_extract_string(body, '$.text') AS text,
       json_extract_string(body, '$.subject') AS subject, max(observed_at) AS observed_at
FROM admin_observations WHERE kind = 'error'
GROUP BY ALL ORDER BY observed_at DESC, call, subject LIMIT $cap
"""

RUNS = """
SELECT job, run_id, started_at, told_at, ended_at, outcome, error, part_of, regroup_version, host,
       lead(started_at) OVER (PARTITION BY job ORDER BY started_at, run_id) AS next_started_at,
       row_number() OVER (PARTITION BY job ORDER BY started_at DESC, run_id DESC) AS position
FROM (
    SELECT *, row_number() OVER (PARTITION BY job, run_id ORDER BY told_at DESC) AS newest
    FROM job_runs WHERE told_at >= $since
) reported
WHERE newest = 1 ORDER BY position, job LIMIT $cap
"""

LIMITS = """
SELECT cluster, limit_name, allowed, groups, example, reached_at FROM (
    SELECT *, row_number() OVER (PARTITION BY cluster, limit_name ORDER BY reached_at DESC) AS newest
    FROM limits_reached
) found WHERE newest = 1 ORDER BY cluster, limit_name LIMIT $cap
"""

NOT_COSTED = """
SELECT cluster, not_costed, count(*) AS generations, count(DISTINCT group_id) AS groups, max(joined_at) AS last_at,
       max_by(group_id, joined_at) AS example
FROM generations WHERE not_costed IS NOT NULL GROUP BY cluster, not_costed ORDER BY cluster, not_costed LIMIT $cap
"""

PATTERNS = """
SELECT * FROM cluster_patterns WHERE ended_at IS NULL
ORDER BY pattern = 'offsets_partition_down' DESC, started_at DESC, cluster, pattern, subject LIMIT $cap
"""

# A replayed capture gives rows of its log and its polls, but no coverage of them.
READ = {
    "log": ("coordinator_events", "SELECT 1 AS found FROM coordinator_events LIMIT $cap"),
    "poll": ("admin_observations", "SELECT 1 AS found FROM admin_observations WHERE kind = 'group_list' LIMIT $cap"),
}


class HealthStore:
    """The queries on one warehouse. A missing table gives no rows."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def sources(self) -> list[Row]:
        """Return `partitions`, `first_at`, `last_at`, `records`, `skipped`, `quarantined` and `gaps` per source."""
        return self._lake.query(SOURCES, ("coverage",), SOURCE_ROWS, {}).rows

    def has_read(self, kind: str) -> bool:
        """Return whether there is any row from a `log` or a `poll`."""
        table, sql = READ[kind]
        return bool(self._lake.query(sql, (table,), 1, {}).rows)

    def patterns(self) -> list[Row]:
        """Return the patterns of clusters that last: offsets partitions first, then the newest."""
        return self._lake.query(PATTERNS, ("cluster_patterns",), PATTERN_ROWS, {}).rows

    def gaps(self) -> Rows:
        """Return the spans that were not read, latest offsets first. `total` is their number."""
        return self._lake.query(GAPS, ("coverage",), GAP_ROWS, {})

    def quarantine(self) -> list[Row]:
        """Return quarantined records by reason: `records`, `last_at`, and the `detail` of the newest one."""
        return self._lake.query(REASONS, ("quarantine",), REASON_ROWS, {}).rows

    def unread(self) -> list[Row]:
        """Return up to three log lines per source and reason that may be lifecycle lines but are not known.

        `lines` is the number of all such lines, `position` is 1 for the newest one of a source and reason.
        """
        try:
            return self._lake.query(UNREAD, ("quarantine",), REASON_ROWS, {}).rows
        except LakeError:
            # A table of an earlier Regroup lacks the column `lines` until a job starts.
            return []

    def limits(self) -> list[Row]:
        """Return the groups that a limit keeps out of silver, from the newest rows of `limits_reached`."""
        return self._lake.query(LIMITS, ("limits_reached",), LIMIT_ROWS, {}).rows

    def not_costed(self) -> list[Row]:
        """Return generations without costs, by cluster and reason: `generations`, `groups`, `last_at`, `example`."""
        try:
            return self._lake.query(NOT_COSTED, ("generations",), LIMIT_ROWS, {}).rows
        except LakeError:
            # A table of an earlier Regroup lacks this column until a job starts.
            return []

    def refusals(self) -> list[Row]:
        """Return the calls that failed or were refused, each with the time of the last failure."""
        return self._lake.query(REFUSALS, ("admin_observations",), REFUSAL_ROWS, {}).rows

    def runs(self, now: int) -> list[Row]:
        """Return the last runs of each job within 90 days, each in its newest state.

        The last run of a job has `position` 1 and comes first. `next_started_at` is the start of the job's next run.
        """
        since = moment(now - now % DAY_MS - RUN_DAYS * DAY_MS)
        return self._lake.query(RUNS, ("job_runs",), RUN_ROWS, {"since": since}).rows

    def results(self) -> list[Row]:
        """Return the latest result of each quality rule, for every table that was checked."""
        return newest_results(self._lake)

    def versions(self) -> Mapping[str, int]:
        """Return the version of every existing table."""
        return self._lake.versions()

    def tables(self) -> list[tuple[str, int, int | None]]:
        """Return name, version and time of the last change of every existing table."""
        changed = self._lake.changed_at()
        return [(name, version, changed.get(name)) for name, version in self._lake.versions().items()]


def newest_records(sources: Sequence[Row]) -> dict[str, int | None]:
    """Return the time of each cluster's newest record or log line; None if none has a time.

    Polls do not count: while they go on, reading may have stopped.
    """
    found: dict[str, int | None] = dict.fromkeys(sorted({row["cluster"] for row in sources}))
    for row in sources:
        if row["source"] != "poll" and row["last_at"] is not None:
            found[row["cluster"]] = max(found[row["cluster"]] or 0, row["last_at"])
    return found
