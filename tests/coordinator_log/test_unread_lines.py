"""Lines that may be lifecycle lines but are not known are counted, and a few of them are kept."""

from __future__ import annotations

import json

import pytest

from pipelines.bronze_batch import Records
from pipelines.coordinator_events import Unreadable
from pipelines.coverage import Span
from pipelines.decoding.source_record import SourceRecord
from pipelines.event_batch import TopicReader
from pipelines.line_reading import read_line
from pipelines.log_layouts import layout, zone
from pipelines.log_lines import PlacedLine, line_rows
from pipelines.unread_lines import KEPT, SAMPLE
from schemas.ignored_lines import IGNORED_LINES
from schemas.states import QuarantineReason
from schemas.unread_lines import REMEDIES, UNREAD_REASONS
from tests.coordinator_log.lines import MANAGER, NEW, line

MESSAGE = f"{NEW}Stabilized group orders generation 7 with 3 members."
STRANGE = f"21.11.2026 06:41:02 | INFO | {MANAGER} | {MESSAGE}"
NEWER = line(f"{NEW}Rewarmed group orders with 3 tasks.")
DEFAULT, UTC = layout("default"), zone("UTC")
LAYOUT, WORDING = UNREAD_REASONS


def read(text: str):
    return read_line(text, DEFAULT, UTC)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (STRANGE, LAYOUT),
        (f"2026-11-21T06:41:09.1Z stdout F {STRANGE}", LAYOUT),
        (f"kafka-1  | {STRANGE}", LAYOUT),
        (json.dumps({"log": STRANGE, "stream": "stdout", "time": "2026-11-21T06:41:09Z"}), LAYOUT),
        (f"06:41:02 GroupMetadataManager: {MESSAGE}", LAYOUT),
        ("06:41:02 [GroupCoordinator 1]: Stabilized group orders generation 7 (__consumer_offsets-3)", LAYOUT),
        (f"INFO {MESSAGE} ({MANAGER})", LAYOUT),
        ("06:41:02 Rebalance started (org.apache.kafka.connect.runtime.distributed.WorkerCoordinator)", LAYOUT),
        ("06:41:02 Replayed (org.apache.kafka.controller.ReplicationControlManager)", LAYOUT),
        (NEWER, WORDING),
        (f"2026-11-21T06:41:09.1Z stdout F {NEWER}", WORDING),
        (line(f"{NEW}Stabilized group orders generation 7 with 3 members. And more"), WORDING),
        (line("[GroupCoordinator 1]: Rewarmed group orders", "kafka.coordinator.group.GroupCoordinator"), WORDING),
        (json.dumps({"timeMillis": 1795243262803, "loggerName": MANAGER, "message": f"{NEW}Rewarmed orders"}), WORDING),
    ],
)
def test_a_line_that_may_be_a_lifecycle_line_has_a_reason_and_shows_its_beginning(text, reason):
    found = read(text)
    assert reason == found.reason
    assert "orders" in found.detail or "06:41:02" in found.detail


@pytest.mark.parametrize(
    "text",
    [
        line("[ReplicaManager broker=1] Expanded", "kafka.server.ReplicaManager"),
        f"\tat {MANAGER}.onLoaded(GroupMetadataManager.java:42)",
        f"\tat {MANAGER}$Inner.call(GroupMetadataManager.java:42)",
        line(f"{NEW}Rewarmed group orders", level="DEBUG"),
        line(f"{NEW}Rewarmed group orders", level="TRACE"),
        line("[ShareCoordinator id=1] Coordinator is odd", "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"),
        line("[Worker clientId=c, groupId=g] Herder started", "org.apache.kafka.connect.runtime.distributed.DistributedHerder"),
        line("[QuorumController id=1] Elected", "org.apache.kafka.controller.ReplicationControlManager"),
        line(f"{NEW}[GroupId orders] The refined assignment does not hand out as many active tasks as the target assignment."),
        "the coordinator of our shop was replaced",
        "",
    ],
)  # fmt: skip
def test_other_lines_and_details_are_not_counted(text):
    assert None is read(text)


@pytest.mark.parametrize("text", IGNORED_LINES)
def test_a_message_that_a_rule_ignores_is_not_counted_and_has_a_reason(text):
    assert None is read(line(f"{NEW}{text}"))
    assert IGNORED_LINES[text]


def test_a_sample_is_short_and_shows_control_characters():
    found = read(f"{STRANGE}\x1b[31m\u202e{'x' * 5000}")
    assert "␛[31m⟨202E⟩xxx" in found.detail
    assert len(found.detail) < SAMPLE + 100


def test_a_file_keeps_a_few_lines_of_each_reason_and_the_number_of_all():
    lines = [STRANGE, NEWER, "nothing", line(MESSAGE), STRANGE, line(MESSAGE, at="9999-12-31 23:59:59,999")] * 10
    placed = [PlacedLine("server.log", number, text) for number, text in enumerate(lines, start=1)]
    events, refused = line_rows(placed, cluster="c", layout=DEFAULT, zone=UTC)
    assert 10 == len(events)
    kept = {reason: [row["lines"] for row in refused if row["reason"] == reason] for reason in UNREAD_REASONS}
    assert {LAYOUT: [20 - KEPT + 1, 1, 1], WORDING: [10 - KEPT + 1, 1, 1]} == kept
    mistimed = [row for row in refused if row["reason"] == QuarantineReason.INVALID_TIMESTAMP]
    assert [None] * 10 == [row["lines"] for row in mistimed]


def topic_rows(values: list[bytes]):
    records = Records.of([SourceRecord(0, at, 1795243262803, None, value) for at, value in enumerate(values)], 0)
    spans = {0: Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(values))}
    rows = TopicReader(cluster="c", topic="t", layout="default", zone="UTC")(records, spans)
    return {name: array.to_pylist() for name, array in rows.items()}, spans[0]


def test_a_topic_keeps_a_few_messages_and_the_number_of_all_lines():
    rows, span = topic_rows([STRANGE.encode()] * 9 + [f"{NEWER}\n{NEWER}".encode()] + [line(MESSAGE).encode()])
    assert [(LAYOUT, 7), (LAYOUT, 1), (LAYOUT, 1), (WORDING, 2)] == [
        (r["reason"], r["lines"]) for r in rows["quarantine"]
    ]
    assert 1 == len(rows["coordinator_events"])
    assert (11, 4, 6) == (span.records, span.quarantined, span.skipped)


def test_a_message_with_a_worse_fault_keeps_that_fault():
    rows, _ = topic_rows([f"{NEWER}\n{line(MESSAGE, at='9999-12-31 23:59:59,999')}".encode()])
    assert [(QuarantineReason.INVALID_TIMESTAMP, None)] == [(r["reason"], r["lines"]) for r in rows["quarantine"]]


def test_every_reason_has_a_remedy_for_files_and_topics():
    assert {(reason, is_file) for reason in UNREAD_REASONS for is_file in (True, False)} == REMEDIES.keys()


def test_a_custom_layout_in_the_settings_reads_what_was_counted():
    pattern = r"(?P<at>\d\d\.\d\d\.\d{4} \S+) \| [A-Z]+ \| (?P<logger>[\w.$]+) \| (?P<message>.*)"
    assert isinstance(read_line(STRANGE, layout(pattern), UTC), Unreadable)  # this time is in no known form
    assert (
        7
        == read_line(
            STRANGE.replace("21.11.2026 06", "2026-11-21 06"),
            layout(pattern.replace(r"\d\d\.\d\d\.\d{4} \S+", ".{19}")),
            UTC,
        ).generation_id
    )
