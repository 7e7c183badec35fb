"""Operations tables: what Regroup's own jobs did. `schemas.tables` explains the notation.

These tables describe a whole warehouse with all its clusters, so `cluster` is not the first column of the key. Their
rows depend on the wall clock, so the same input gives different rows each time.
"""

from __future__ import annotations

from schemas.tables import Table, columns

HEARTBEAT_MS = 300_000
"""Longest time between two heartbeats of a running job, in milliseconds."""

JOB_RUNS = Table(
    name="job_runs",
    layer="operations",
    key=("job", "run_id", "told_at"),
    cluster_by=(),
    comment="Status reports of each run of a job, from its start to its end. The newest row of a run counts.",
    columns=columns("""
        job             | STRING    | Command, such as ingest; the parts of up have rows of their own
        run_id          | STRING    | Id of the run
        told_at         | TIMESTAMP | When the job reported this
        started_at      | TIMESTAMP NOT NULL | Start of the run
        ended_at        | TIMESTAMP | End of the run; NULL while it runs
        outcome         | STRING NOT NULL | schemas.states.JobOutcome
        error           | STRING    | Error of a failed run, in one line; NULL unless it failed
        part_of         | STRING    | Job in whose process it ran; NULL if it ran in its own process
        regroup_version | STRING NOT NULL | Version of Regroup
        host            | STRING NOT NULL | Machine that ran it
        pid             | INT NOT NULL | Process id on that machine
    """),
)

QUALITY_RESULTS = Table(
    name="quality_results",
    layer="operations",
    key=("table_name", "checked_at", "rule"),
    cluster_by=(),
    comment="Whether the rows of a table version keep the rules of schemas.rules. The newest row of a table counts.",
    columns=columns("""
        table_name    | STRING    | Table that was checked
        checked_at    | TIMESTAMP | When it was checked
        rule          | STRING    | Name of the rule in schemas.rules
        table_id      | STRING NOT NULL | Delta's id of the table; a recreated table of the same name has a different id
        version       | BIGINT NOT NULL | Delta version of the table
        severity      | STRING NOT NULL | schemas.states.RuleSeverity
        sentence      | STRING NOT NULL | What is wrong if the rule is broken
        passed        | BOOLEAN NOT NULL | Whether all checked rows keep the rule
        rows_checked  | BIGINT NOT NULL | Number of rows checked: those in files added since the last check, or all
        rows_failed   | BIGINT NOT NULL | Number of rows that break the rule
        examples      | ARRAY<STRING> NOT NULL | Keys of the first few rows that break the rule
    """),
)

LIMITS_REACHED = Table(
    name="limits_reached",
    layer="operations",
    key=("limit_name", "cluster", "reached_at"),
    cluster_by=(),
    comment="Groups in bronze that a limit in the settings keeps out of silver. The newest row of a limit counts.",
    columns=columns("""
        limit_name | STRING    | Name of the setting (schemas.states.Limit)
        cluster    | STRING    | Name of the Kafka cluster, chosen by the operator
        reached_at | TIMESTAMP | When the groups were counted
        allowed    | BIGINT NOT NULL | Value of the setting
        groups     | BIGINT NOT NULL | Number of groups that the setting keeps out
        example    | STRING NOT NULL | Id of one of these groups, shortened
    """),
)

OPERATIONS = (JOB_RUNS, QUALITY_RESULTS, LIMITS_REACHED)
