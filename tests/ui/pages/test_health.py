"""The page about Regroup itself: what was read, missed, refused and could not be read."""

from __future__ import annotations

import json

import pytest

from dashboards.freshness import freshness
from dashboards.pages.health import render
from dashboards.queries.store import Store
from dashboards.urlstate import parse
from jobs.tables.tables import FolderTables
from schemas.operations import HEARTBEAT_MS, JOB_RUNS, QUALITY_RESULTS
from testing import sample
from tests.ui.reading import words

MINUTE = 60_000


@pytest.fixture
def page(lake):
    return lambda warehouse, now: words(render(Store(lake(warehouse)), parse("/health", ""), now))


@pytest.fixture
def troubled(tmp_path, now):
    rows = sample.merge({}, sample.static(now - 2 * MINUTE))
    key = {"cluster": sample.CLUSTER, "log_epoch": 0, "source": "__consumer_offsets"}
    counts = {"records": 900, "skipped": 0, "quarantined": 2}
    rows["coverage"] = [
        {**key, **counts, "source_partition": 7, "from_offset": 0, "to_offset": 902, "is_gap": False,
         "from_at": now - 60 * MINUTE, "to_at": now - 3 * MINUTE},
        {**key, "source_partition": 8, "from_offset": 40, "to_offset": 90, "is_gap": True,
         "gap_reason": "deleted by retention before it was read", "records": 0, "skipped": 0, "quarantined": 0},
    ]  # fmt: skip
    bad = {**key, "source_partition": 7, "record_at": now - 5 * MINUTE, "reason": "unknown_version"}
    rows["quarantine"] = [
        bad | {"source_offset": 11, "detail": "key version 99"},
        bad | {"source_offset": 12, "detail": "key <b>version</b> 98"},
    ]
    body = {"call": "describe_log_dirs", "text": "CLUSTER_AUTHORIZATION_FAILED"}
    rows["admin_observations"] = [
        {"cluster": sample.CLUSTER, "observed_at": now - MINUTE, "source": "poll", "kind": "error",
         "subject": "describe_log_dirs", "body": json.dumps(body)},
    ]  # fmt: skip
    sample.write(tmp_path, rows)
    return tmp_path


def test_a_newest_record_in_the_future_is_not_called_new(tmp_path, now, page, lake) -> None:
    sample.write(tmp_path, sample.merge({}, sample.static(now), sample.coverage(now)))
    printed = page(tmp_path, now - 180 * MINUTE)
    assert "3 h in the future: a clock is wrong, so its age is not known" in printed
    assert "Newest record | in the future" in printed
    header = words(freshness(Store(lake(tmp_path)).span(), now - 180 * MINUTE))
    assert "in the future" in header
    assert "live" not in header


def test_what_was_missed_refused_or_unreadable_is_counted_and_reported(troubled, now, page) -> None:
    text = page(troubled, now)
    for printed in (
        "3 min old: either nothing has been written since, or nothing was read", "2 records in quarantine",
        "unknown_version", "key <b>version</b> 98", "1 span not read", "deleted by retention before it was read",
        "describe_log_dirs", "CLUSTER_AUTHORIZATION_FAILED", "The brokers are not polled",
        "No coordinator's log has been read",
    ):  # fmt: skip
        assert printed in text, printed


def test_log_lines_that_were_not_read_are_shown_with_the_setting_that_helps(troubled, now, page) -> None:
    key = {"cluster": sample.CLUSTER, "log_epoch": 0, "record_at": now}
    rows = [
        key | {"source": source, "source_partition": partition, "source_offset": offset, "reason": reason,
               "detail": f"in no known layout: {text}", "lines": lines}
        for source, partition, offset, reason, text, lines in (
            ("server.log", -1, 4, "unknown_layout", "line 4 <b>", 4_000),
            *(("server.log", -1, n, "unknown_layout", f"line {n}", 1) for n in (5, 6, 7)),
            ("regroup-events", 0, 9, "unknown_layout", "of a topic", 2),
            ("regroup-events", 0, 10, "unknown_wording", "a new text\u202e", 1),
        )
    ]  # fmt: skip
    sample.write(troubled, {"quarantine": rows})
    text = page(troubled, now)
    for printed in (
        "2 records in quarantine", "4,006 log lines in an unknown layout or with an unknown text",
        "server.log | unknown_layout | 4003 | in no known layout: line 7 | Set layout of this file in [[clusters.NAME.logs]]",
        "line 6", "line 5", "regroup-events | unknown_layout | 2 | in no known layout: of a topic | Set events_layout",
        "a new text⟨202E⟩ | No setting helps",
    ):  # fmt: skip
        assert printed in text, printed
    assert "line 4" not in text


def test_every_table_is_listed_also_the_ones_that_are_not_there(troubled, now, page) -> None:
    text = page(troubled, now)
    assert "group_health | not there yet" in text
    assert "generations | not there yet" not in text


def test_before_anything_was_read_it_says_what_to_run(tmp_path, now, page) -> None:
    assert "Nothing has been read yet" in page(tmp_path, now)


def test_the_age_is_that_of_the_cluster_furthest_behind_whatever_polls_see(tmp_path, now, page) -> None:
    read = sample.coverage(now)["coverage"][0]
    far = read | {"cluster": "far", "from_at": now - 120 * MINUTE, "to_at": now - 60 * MINUTE}
    poll = far | {"source": "poll", "source_partition": -1, "to_at": now}
    sample.write(tmp_path, {"coverage": [read, far, poll]})
    assert "the newest record of far is 1 h old: either nothing has been written" in page(tmp_path, now)


def test_what_a_replayed_log_and_its_polls_told_is_not_called_absent(troubled, now, page) -> None:
    key = {"cluster": sample.CLUSTER}
    event = key | {"source_id": "broker-1.log", "line_no": 1}
    seen = key | {"observed_at": now, "source": "poll", "kind": "group_list", "subject": "", "body": "{}"}
    sample.write(troubled, {"coordinator_events": [event], "admin_observations": [seen]})
    text = page(troubled, now)
    assert "No coordinator's log has been read" not in text
    assert "The brokers are not polled" not in text


HOSTILE = "</td><script>alert(1)</script>\u202e"


def run(
    now: int, job: str, outcome: str, *, began: float, described: float, run_id: str = "1", error: str | None = None
):
    """Return a row of a run; `began` and `described` are its start and its last report, in minutes before now."""
    at = now - int(described * MINUTE)
    return {
        "job": job, "run_id": run_id, "told_at": at, "started_at": now - int(began * MINUTE), "outcome": outcome,
        "ended_at": None if outcome == "running" else at, "error": error, "regroup_version": "0.1.0", "host": "h",
        "part_of": None, "pid": 1,
    }  # fmt: skip


def result(now: int, table: str, rule: str = "key is unique", *, failed: int = 0, at: int = 0, **more):
    return {
        "table_name": table, "checked_at": now - at, "rule": rule, "table_id": "t", "version": 0, "severity": "error",
        "sentence": f"{rule} is not so.", "passed": failed == 0, "rows_checked": 900, "rows_failed": failed,
        "examples": [HOSTILE] if failed else [],
    } | more  # fmt: skip


def test_a_run_that_went_wrong_comes_first_and_is_counted(troubled, now, page) -> None:
    FolderTables(troubled).append(JOB_RUNS, [
        run(now, "analyze", "running", began=50, described=2),
        run(now, "build", "running", began=30, described=30), run(now, "build", "succeeded", began=30, described=1),
        run(now, "notify", "failed", began=90, described=80, error=HOSTILE),
    ])  # fmt: skip
    text = page(troubled, now)
    assert "1 job failed or stopped reporting in the last run" in text
    assert "Failed or silent | 1 | of 3 jobs" in text
    assert text.index("notify | failed") < text.index("build | succeeded")
    assert "analyze | running" in text
    assert "alert(1)</script>⟨202E⟩" in text


def test_a_killed_run_is_not_called_running(troubled, now, page) -> None:
    silent = 3 * HEARTBEAT_MS / MINUTE
    FolderTables(troubled).append(JOB_RUNS, [
        run(now, "ingest", "running", began=600, described=silent),
        run(now, "build", "running", began=9, described=9, run_id="killed"),
        run(now, "build", "running", began=4, described=1, run_id="again"),
    ])  # fmt: skip
    text = page(troubled, now)
    assert 2 == text.count("end not reported")
    assert "build | running" in text
    assert "Failed or silent | 1 | of 2 jobs" in text


def test_a_run_that_still_speaks_is_not_called_lost_because_another_began(troubled, now, page) -> None:
    FolderTables(troubled).append(JOB_RUNS, [
        run(now, "ingest", "running", began=60, described=1, run_id="one cluster"),
        run(now, "ingest", "running", began=30, described=2, run_id="another"),
    ])  # fmt: skip
    assert "end not reported" not in page(troubled, now)


def test_jobs_that_left_no_run_and_tables_never_checked_are_not_called_healthy(troubled, now, page) -> None:
    text = page(troubled, now)
    assert "no job run is recorded; no table was checked against its rules" in text
    assert "Failed or silent | unknown" in text
    assert "Rules broken | unknown" in text
    assert "generations | never checked" in text
    assert "the state of the jobs is unknown" in text


def test_a_broken_rule_is_reported_with_its_rows_and_their_keys(troubled, now, page) -> None:
    FolderTables(troubled).append(QUALITY_RESULTS, [
        result(now, "stalls", failed=7, at=5 * MINUTE), result(now, "stalls"), result(now, "groups", "old rule"),
        result(now, "generations", failed=3), result(now, "generations", "evidence is known"),
    ])  # fmt: skip
    text = page(troubled, now)
    assert "1 rule broken" in text
    assert "tables never checked" in text
    assert "generations | key is unique | key is unique is not so. | error | 3 | 900" in text
    assert "alert(1)</script>⟨202E⟩" in text
    assert "generations | broken | " in text
    assert "stalls | kept | " in text


def test_rows_newer_than_the_last_check_are_not_called_checked(troubled, now, page) -> None:
    FolderTables(troubled).append(QUALITY_RESULTS, [result(now, "groups")])
    sample.write(troubled, {"groups": []})
    text = page(troubled, now)
    assert "groups | kept, newer rows not checked yet | 1 | " in text
    assert "1 table checked, 1 changed since" in text
    assert "never checked, 1 table changed since." in text


def test_a_failed_job_is_reported_before_anything_was_read(tmp_path, now, page) -> None:
    FolderTables(tmp_path).append(JOB_RUNS, [run(now, "ingest", "failed", began=2, described=1, error="No broker.")])
    text = page(tmp_path, now)
    assert "Nothing has been read yet" in text
    assert "ingest | failed" in text
    assert "No broker." in text
