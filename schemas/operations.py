"""Operations: what Regroup's own jobs did. See `schemas.tables` for the notation.

These tables are about a warehouse, with all its clusters, so `cluster` does not come first in them; and the clock is in
them, so that the same input gives other rows each time.
"""

from __future__ import annotations

from schemas.tables import Table, columns

HEARTBEAT_MS = 300_000
"""A job that runs says so again and again, at most so long after it said it last."""

JOB_RUNS = Table(
    name="job_runs",
    layer="operations",
    key=("job", "run_id", "told_at"),
    cluster_by=(),
    comment="What each run of a job said: when it starts, while it runs, when it ends. The newest row of a run counts.",
    columns=columns("""
        job             | STRING    | Command, such as ingest; the parts of up tell of themselves as well
        run_id          | STRING    | Run
        told_at         | TIMESTAMP | When the job said this
        started_at      | TIMESTAMP NOT NULL | Start of the run
        ended_at        | TIMESTAMP | End of the run; NULL while it runs
        outcome         | STRING NOT NULL | schemas.states.JobOutcome
        error           | STRING    | Why it failed, in one line; NULL unless it did
        part_of         | STRING    | Job in whose process it ran; NULL where it ran by itself
        regroup_version | STRING NOT NULL | Version of Regroup
        host            | STRING NOT NULL | Machine it ran on
        pid             | INT NOT NULL | Process on that machine
    """),
)

QUALITY_RESULTS = Table(
    name="quality_results",
    layer="operations",
    key=("table_name", "checked_at", "rule"),
    cluster_by=(),
    comment="Whether the rows of a version of a table keep the rules of schemas.rules; the newest of a table counts.",
    columns=columns("""
        table_name    | STRING    | Table that was checked
        checked_at    | TIMESTAMP | When
        rule          | STRING    | Name of the rule in schemas.rules
        table_id      | STRING NOT NULL | Delta's id of the table: another one of the same name has another
        version       | BIGINT NOT NULL | Version of the table
        severity      | STRING NOT NULL | schemas.states.RuleSeverity
        sentence      | STRING NOT NULL | What the rule promises
        passed        | BOOLEAN NOT NULL | No row that was looked at breaks it
        rows_checked  | BIGINT NOT NULL | Rows looked at: of files that came since the version checked before, or all
        rows_failed   | BIGINT NOT NULL | Those that break it
        examples      | ARRAY<STRING> NOT NULL | Keys of the first few of these
    """),
)

LIMITS_REACHED = Table(
    name="limits_reached",
    layer="operations",
    key=("limit_name", "cluster", "reached_at"),
    cluster_by=(),
    comment="Groups of bronze that a limit in the settings keeps out of silver; the newest row of a limit counts.",
    columns=columns("""
        limit_name | STRING    | Setting (schemas.states.Limit)
        cluster    | STRING    | Name the operator gave this Kafka cluster
        reached_at | TIMESTAMP | When the groups were counted
        allowed    | BIGINT NOT NULL | Value of the setting
        groups     | BIGINT NOT NULL | Groups that the setting keeps out
        example    | STRING NOT NULL | One of their ids, cut
    """),
)

OPERATIONS = (JOB_RUNS, QUALITY_RESULTS, LIMITS_REACHED)
