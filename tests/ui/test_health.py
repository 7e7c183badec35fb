"""The page about Regroup itself: what was read, missed, refused and could not be read."""

from __future__ import annotations

import json

import pytest

from dashboards.pages.health import render
from dashboards.store import Store
from dashboards.urlstate import parse
from tests.ui import sample
from tests.ui.test_reassignments import words

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


def test_what_was_missed_refused_or_unreadable_is_counted_and_told(troubled, now, page) -> None:
    text = page(troubled, now)
    for said in (
        "3 min 00 s old: either nothing has been written since, or nobody reads", "2 records in quarantine",
        "unknown_version", "key <b>version</b> 98", "1 span not read", "deleted by retention before it was read",
        "describe_log_dirs", "CLUSTER_AUTHORIZATION_FAILED", "Nobody polls the brokers",
        "No coordinator's log has been read",
    ):  # fmt: skip
        assert said in text, said


def test_every_table_is_listed_also_the_ones_that_are_not_there(troubled, now, page) -> None:
    text = page(troubled, now)
    assert "group_health | not there yet" in text
    assert "generations | not there yet" not in text


def test_before_anything_was_read_it_says_what_to_run(tmp_path, now, page) -> None:
    assert "Nothing has been read yet" in page(tmp_path, now)


def test_what_a_replayed_log_and_its_polls_told_is_not_called_absent(troubled, now, page) -> None:
    key = {"cluster": sample.CLUSTER}
    event = key | {"source_id": "broker-1.log", "line_no": 1}
    seen = key | {"observed_at": now, "source": "poll", "kind": "group_list", "subject": "", "body": "{}"}
    sample.write(troubled, {"coordinator_events": [event], "admin_observations": [seen]})
    text = page(troubled, now)
    assert "No coordinator's log has been read" not in text
    assert "Nobody polls the brokers" not in text
