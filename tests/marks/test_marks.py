"""A mark is stored once, as announced, however it arrived; an invalid one is quarantined and has no other effect."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.errors import UserError
from jobs.mark import envelope
from pipelines.bronze_batch import Records
from pipelines.coordinator_events import Unreadable
from pipelines.coverage import Span
from pipelines.event_batch import TopicReader
from pipelines.log_envelopes import LogLine, unwrap
from pipelines.marks import Mark, mark, mark_rows, moment
from schemas.gold import MARKS
from schemas.states import MarkKind
from tests.whole_rows import whole

RECEIVED_MS = 1_795_000_000_000
AT = datetime(2026, 11, 21, 12, 1, 40, tzinfo=UTC)
SAID = {"kind": "mark", "text": "v2.31", "mark_kind": "deploy", "at": "2026-11-21T12:01:40Z", "marked_by": "ci"}


def read(*values: bytes) -> dict[str, list[dict]]:
    """Return the bronze rows of these messages."""
    numbers = np.arange(len(values))
    records = Records(
        log_epoch=np.zeros_like(numbers), partition=np.zeros_like(numbers), offset=numbers,
        timestamp_ms=np.full_like(numbers, RECEIVED_MS), key=[None] * len(values), value=values,
    )  # fmt: skip
    reading = TopicReader(cluster="kafka", topic="regroup-events", layout="default", zone="UTC")
    rows = reading(records, {0: Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(values))})
    return {name: array.to_pylist() for name, array in rows.items()}


def of(**body) -> dict[str, list[dict]]:
    return read(json.dumps(body).encode())


def test_a_mark_says_when_what_and_for_whom() -> None:
    (row,) = of(**SAID, group_id="billing")["admin_observations"]
    assert (AT, "mark", "billing#0-0") == (row["observed_at"], row["kind"], row["subject"])
    expected = {
        "cluster": "kafka",
        "marked_at": AT,
        "kind": "deploy",
        "text": "v2.31",
        "group_id": "billing",
        "group_ids": ["billing"],
        "marked_by": "ci",
    }
    assert [whole(expected, MARKS)] == mark_rows([row])


@pytest.mark.parametrize(
    "at",
    ["2026-11-21T12:01:40Z", "2026-11-21 13:01:40+01:00", " 2026-11-21T12:01:40.000999Z", 1795262500000, 1795262500, "1795262500", 1795262500.0004],
)  # fmt: skip
def test_a_time_is_read_as_ci_writes_it(at) -> None:
    assert AT == moment(at)


@pytest.mark.parametrize(
    "at", ["2026-11-21T12:01:40", "noon", "", 20261121, "20261121", -5, 1e400, float("nan"), True, [], {}, 10**30, "9" * 5000, "0001-01-01T00:00:00+14:00"]
)  # fmt: skip
def test_a_time_without_its_zone_or_without_sense_is_refused(at) -> None:
    assert "invalid_timestamp" == mark(SAID | {"at": at}, AT).reason


def test_without_a_time_it_is_when_the_message_came() -> None:
    (row,) = mark_rows(of(kind="mark", text="v2.31")["admin_observations"])
    assert RECEIVED_MS == row["marked_at"].timestamp() * 1000
    assert "other" == row["kind"]


def test_an_unknown_kind_is_kept_in_the_text() -> None:
    assert (MarkKind.OTHER, "rollback: v2.30") == mark(SAID | {"mark_kind": "rollback", "text": "v2.30"}, AT)[1:3]
    assert MarkKind.DEPLOY == mark(SAID | {"mark_kind": "Deploy"}, AT).kind


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": ""}, "invalid_envelope"), ({"text": "  "}, "invalid_envelope"), ({"text": None}, "invalid_envelope"),
        ({"text": 7}, "invalid_envelope"), ({"mark_kind": []}, "invalid_envelope"), ({"group_id": 5}, "invalid_envelope"),
        ({"marked_by": {}}, "invalid_envelope"), ({"text": "x" * 1001}, "oversized"), ({"at": "soon"}, "invalid_timestamp"),
    ],
)  # fmt: skip
def test_a_mark_that_is_not_understood_is_quarantined_whole(change, reason) -> None:
    rows = of(**SAID | change)
    assert [] == rows["admin_observations"]
    assert [reason] == [row["reason"] for row in rows["quarantine"]]


def test_a_log_line_that_speaks_of_marks_stays_a_log_line() -> None:
    assert [LogLine("mark my words", None)] == unwrap(b'{"kind": "mark", "message": "mark my words"}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["\ud800", "\udfff\x00", "mark"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(
    st.fixed_dictionaries(
        {"text": JSON}, optional=dict.fromkeys(("mark_kind", "at", "group_id", "marked_by", "source", "more"), JSON)
    )
)
def test_no_mark_whatever_its_json_stops_the_reading(body) -> None:
    rows = read(json.dumps({"kind": "mark"} | body).encode())
    kept = rows["admin_observations"]
    assert len(kept) == len(mark_rows(kept))
    assert 1 == len(kept) + len(rows["quarantine"])


def test_deep_json_is_quarantined() -> None:
    for depth in (100, 900, 990, 5000):
        for kind in ("mark", "admin"):
            value = f'{{"kind": "{kind}", "source": "x", "at": 1795262500000, "text": "t", "deep": {"[" * depth}{"]" * depth}}}'
            rows = read(value.encode())
            assert 1 == len(rows["admin_observations"]) + len(rows["quarantine"])


def test_what_was_announced_twice_is_one_row_in_whatever_order() -> None:
    printed = [
        SAID,
        SAID | {"source": "retry"},
        SAID | {"group_id": "a", "text": "v2"},
        SAID | {"group_id": "b", "text": "v2", "marked_by": "a"},
    ]
    rows = [row for body in printed for row in of(**body)["admin_observations"]]
    expected = mark_rows(rows)
    found = [(r["text"], r["group_id"], r["group_ids"], r["marked_by"]) for r in expected]
    assert [("v2", None, ["a", "b"], "a"), ("v2.31", None, [], "ci")] == found
    of_all = mark_rows([*rows, *of(**SAID | {"text": "v2"})["admin_observations"]])
    assert [[], []] == [row["group_ids"] for row in of_all], "one that names no group is about the whole cluster"
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert expected == mark_rows(rows)


def test_the_command_refuses_what_would_not_be_understood() -> None:
    with pytest.raises(UserError, match="has no text"):
        envelope(" ", kind="deploy", at=None, group=None, by=None)
    with pytest.raises(UserError, match=r"--at '12:01' is not a valid time: write it with its zone"):
        envelope("v2", kind="deploy", at="12:01", group=None, by=None)
    found = mark(envelope("v2", kind="maintenance", at="2026-11-21T12:01:40Z", group="g", by="me"), None)
    assert Mark(AT, MarkKind.MAINTENANCE, "v2", "g", "me") == found
    assert not isinstance(mark(envelope("v2", kind="x", at=None, group="", by=None), None), Unreadable)
