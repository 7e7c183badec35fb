"""Pages with facts from log lines say where each line came from."""

from __future__ import annotations

from dashboards.app import page
from dashboards.queries.store import Store
from dashboards.text import ABSENT
from testing import sample
from tests.ui.reading import words

GROUP = "?cluster=prod-eu&group=billing-worker"


def with_lines(warehouse, now):
    rows = sample.everyday(now)
    joined = next(
        g["joined_at"] for g in rows["generations"] if ("billing-worker", 5) == (g["group_id"], g["generation_id"])
    )
    line = {
        "cluster": sample.CLUSTER, "event_at": joined, "event_precision_ms": 1, "event_kind": "stabilized",
        "group_id": "billing-worker", "raw": "Member MemberMetadata(clientId=b, clientHost=/10.9.8.7, x=1) has left",
    }  # fmt: skip
    lines = [
        line | {"source_id": "logs-b3-0", "line_no": 41, "broker_id": 3, "source_binding": "topic logs-b3"},
        line | {"source_id": "open-1#2", "line_no": 77},
        line | {"source_id": "<b>server.log", "line_no": 5, "broker_id": 1},
        line | {"source_id": "others-0", "line_no": 1, "group_id": "somebody-else", "raw": "secret words"},
    ]
    sample.write(warehouse, rows | {"coordinator_events": lines})


def test_a_rebalance_lists_every_line_with_its_source_offset_and_binding(tmp_path, now, lake) -> None:
    with_lines(tmp_path, now)
    text = words(page(Store(lake(tmp_path)), "/rebalance", f"{GROUP}&incarnation=0&generation=5", None, now)[0])
    assert "stabilized | 3 | logs-b3-0 | 41 | topic logs-b3" in text
    assert f"stabilized | {ABSENT} | open-1#2 | 77 | nothing" in text
    assert "No setting binds the source of 2 of them" in text
    assert "others-0" not in text
    assert "secret words" not in text
    assert "clientHost=…, x=1) has left" in text
    assert "10.9.8.7" not in text, "the setting client_host decides what readers see of addresses"


def test_a_group_counts_its_lines_by_source(tmp_path, now, lake) -> None:
    with_lines(tmp_path, now)
    text = words(page(Store(lake(tmp_path)), "/group", GROUP, None, now)[0])
    assert "logs-b3-0 | 3 | topic logs-b3 | 1" in text
    assert "open-1 | " in text
    assert "3 lines about this group in this range" in text


def test_without_lines_nothing_rests_on_one(tmp_path, now, lake) -> None:
    sample.write(tmp_path, sample.everyday(now))
    for path, more in (("/group", ""), ("/rebalance", "&incarnation=0&generation=5")):
        assert "No log line: nothing here relies on one" in words(
            page(Store(lake(tmp_path)), path, GROUP + more, None, now)[0]
        )
