"""A capture keeps the metrics that consumers pushed, and a replay makes the same rows of them."""

from __future__ import annotations

import json

import pytest

from jobs.replay import CaptureRecords, bronze_of
from pipelines.client_metrics.captured import PLACE, captured, pushed_row
from tests.client_metrics.test_messages import encoded, read, recorded


def rows_of(*bodies: dict) -> dict[str, list[dict]]:
    """The bronze rows of these lines of `admin.jsonl`."""
    return bronze_of(CaptureRecords(observations=list(enumerate(bodies, 1))), "kafka", {})


def known(row: dict) -> dict:
    return {name: value for name, value in row.items() if value is not None and name not in PLACE}


@pytest.mark.parametrize("name", ["java", "librdkafka"])
def test_a_push_is_the_same_after_a_capture(name) -> None:
    (row,) = read(*encoded(recorded(name)))["client_metrics"]
    body = json.loads(json.dumps(captured(row))) | {"observed_at_ms": 1_795_000_000_000}
    assert known(row) == pushed_row(body)
    found = rows_of(body)
    (again,) = found["client_metrics"]
    assert known(row) == known(again)
    assert ("kafka", "admin.jsonl", 1) == tuple(again[name] for name in PLACE[:3])
    assert [] == found["quarantine"] == found["admin_observations"]


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"group_id": None}, "group_id is missing"),
        ({"measured_at": None}, "measured_at is missing"),
        ({"measured_at": "soon"}, "measured_at is not a valid TIMESTAMP"),
        ({"measured_at": 10**18}, "measured_at is not a valid TIMESTAMP"),
        ({"member_id": ["a"]}, "member_id is not a valid STRING"),
        ({"client_id": "x" * 1001}, "client_id is not a valid STRING"),
        ({"assigned_partitions": 2**31}, "assigned_partitions is not a valid INT"),
        ({"rebalances": -1}, "rebalances is not a valid BIGINT"),
        ({"rebalances": True}, "rebalances is not a valid BIGINT"),
        ({"poll_gap_ms_max": "long"}, "poll_gap_ms_max is not a valid DOUBLE"),
    ],
)
def test_a_broken_push_is_quarantined_and_the_others_are_read(changed, detail) -> None:
    (row,) = read(*encoded(recorded("java")))["client_metrics"]
    body = captured(row) | {"observed_at_ms": 1}
    found = rows_of(body | changed, body)
    assert [2] == [each["line_no"] for each in found["client_metrics"]]
    assert [(1, "invalid_value", detail)] == [
        (each["source_offset"], each["reason"], each["detail"]) for each in found["quarantine"]
    ]
