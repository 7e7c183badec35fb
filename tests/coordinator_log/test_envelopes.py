"""The log line is extracted from the envelope of each shipper."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kafka.logs.log_files import FileLine
from jobs.ship_logs import envelope
from pipelines.coordinator_events import Unreadable
from pipelines.log_envelopes import LogLine, Observation, unwrap
from pipelines.log_layouts import layout, zone
from pipelines.log_lines import PlacedLine, line_rows
from schemas.coordinator_log import EventKind
from schemas.states import QuarantineReason
from tests.coordinator_log.lines import MANAGER, NEW, line, parse

MESSAGE = f"{NEW}Stabilized group orders generation 7 with 3 members."
LINE = line(MESSAGE)

FILEBEAT = {
    "@timestamp": "2026-11-21T06:41:03.100Z", "@metadata": {"beat": "filebeat", "version": "9.1.0"},
    "log": {"offset": 1042, "file": {"path": "/var/log/kafka/server.log"}}, "message": LINE, "fields": {"broker_id": 4},
    "host": {"name": "kafka-4"},
}  # fmt: skip
WRAPPED = {
    "filebeat": FILEBEAT,
    "filebeat with the original": FILEBEAT | {"message": "Stabilized group", "event": {"original": LINE}},
    "filebeat with a flat original": FILEBEAT | {"message": "Stabilized group", "event.original": LINE},
    "vector": {"file": "/var/log/kafka/server.log", "host": "k", "message": LINE, "source_type": "file",
               "timestamp": "2026-11-21T06:41:03.1Z", "broker_id": "4"},
    "fluent bit": {"@timestamp": 1795243263.1, "log": LINE, "labels": {"broker.id": 4}},
    "container runtime": {"log": LINE + "\n", "stream": "stdout", "time": "2026-11-21T06:41:03.1Z", "broker_id": 4},
    "opentelemetry": {"body": LINE, "severityText": "INFO", "attributes": {"broker_id": 4}},
    "opentelemetry value": {"body": {"stringValue": LINE}, "attributes": {"brokerId": 4}},
    "otlp": {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": LINE}, "attributes": {"broker_id": 4}}]}]}]},
    "array": [{"message": LINE, "broker_id": 4}],
    "json within json": {"log": json.dumps({"message": LINE}), "broker_id": 4},
    "journal": {"__REALTIME_TIMESTAMP": "1795243263100000", "_SYSTEMD_UNIT": "kafka.service", "PRIORITY": "6", "MESSAGE": LINE, "broker_id": 4},
    "journal with bytes": {"__REALTIME_TIMESTAMP": "1795243263100000", "MESSAGE": list(LINE.encode()), "broker_id": 4},
    "fluent bit from the journal": {"@timestamp": 1795243263.1, "_PID": "7", "MESSAGE": LINE, "broker_id": 4},
    "opentelemetry from the journal": {"body": {"MESSAGE": LINE}, "attributes": {"broker_id": 4}},
    "own": {"source": "ship-logs", "kind": "log", "at": 1795243263100, "line": LINE, "broker_id": 4},
}  # fmt: skip
LOG4J2 = {
    "JsonLayout": {"instant": {"epochSecond": 1795243262, "nanoOfSecond": 803_000_000}, "thread": "t", "level": "INFO",
                   "loggerName": MANAGER, "message": MESSAGE, "endOfBatch": False},
    "JsonLayout millis": {"timeMillis": 1795243262803, "level": "INFO", "loggerName": MANAGER, "message": MESSAGE},
    "ECS": {"@timestamp": "2026-11-21T06:41:02.803Z", "ecs.version": "1.2.0", "log.level": "INFO", "message": MESSAGE,
            "process.thread.name": "t", "log.logger": MANAGER},
    "ECS nested": {"@timestamp": "2026-11-21T06:41:02.803Z", "log": {"level": "INFO", "logger": MANAGER}, "message": MESSAGE},
    "Logstash": {"@version": 1, "@timestamp": "2026-11-21T06:41:02.803Z", "message": MESSAGE, "logger_name": MANAGER, "level": "INFO"},
    "seconds": {"timestamp": 1795243262.803, "logger": MANAGER, "level": "info", "message": MESSAGE},
    "microseconds": {"timestamp": 1795243262803999, "logger": MANAGER, "level": "INFO", "message": MESSAGE},
    "nanoseconds": {"timestamp": 1795243262803999999, "logger": MANAGER, "level": "INFO", "message": MESSAGE},
    "in a container": {"log": json.dumps({"timeMillis": 1795243262803, "level": "INFO", "loggerName": MANAGER, "message": MESSAGE}) + "\n",
                       "stream": "stdout"},
}  # fmt: skip


def bare(value: object) -> list[LogLine] | Observation | Unreadable:
    return unwrap(json.dumps(value).encode())


@pytest.mark.parametrize("name", WRAPPED)
def test_a_shippers_envelope_gives_the_line_and_its_broker(name):
    assert [LogLine(LINE, 4)] == bare(WRAPPED[name])


@pytest.mark.parametrize("name", LOG4J2)
def test_the_parts_of_a_json_layout_are_one_line_again(name):
    [found] = bare(LOG4J2[name])
    event = parse_as(found)
    expected = parse(LINE)
    assert (expected.event_at, expected.group_id, expected.event_kind) == (
        event.event_at,
        event.group_id,
        event.event_kind,
    )


@pytest.mark.parametrize(
    ("severity", "level"), [("WARNING", "WARN"), ("EMERGENCY", "FATAL"), ("error", "ERROR"), ("notice", "INFO")]
)
def test_a_level_with_another_name_hides_no_line(severity, level):
    [found] = bare(
        {"timestamp": "2026-11-21T06:41:02.803Z", "severity": severity, "message": MESSAGE, "_logger": MANAGER}
    )
    assert f"] {level} " in found.line
    assert "stabilized" == parse_as(found).event_kind


def parse_as(found: LogLine):
    return parse(found.line, like=found.layout, in_zone=found.zone)


@pytest.mark.parametrize(
    "time",
    [{}, {"instant": {"epochSecond": "x"}}, {"timestamp": 1e300}, {"timestamp": "yesterday"}, {"timeMillis": True}],
)
def test_parts_without_a_possible_time_are_quarantined_by_the_parser(time):
    [found] = bare({"loggerName": MANAGER, "message": MESSAGE, **time})
    assert QuarantineReason.INVALID_TIMESTAMP == parse_as(found).reason


@pytest.mark.parametrize(
    ("times", "stamp"),
    [
        ({"__REALTIME_TIMESTAMP": "1795243262803921"}, "2026-11-21T06:41:02.803921Z"),
        ({"__REALTIME_TIMESTAMP": 1795243262803921}, "2026-11-21T06:41:02.803921Z"),
        (
            {"__REALTIME_TIMESTAMP": "1795243263100000", "_SOURCE_REALTIME_TIMESTAMP": "1795243262803921"},
            "2026-11-21T06:41:02.803921Z",
        ),
    ],
)
def test_the_journal_gives_its_time_to_a_line_without_one(times, stamp):
    without = f"INFO {MESSAGE} ({MANAGER})"
    assert [LogLine(f"{stamp} {without}")] == bare({"MESSAGE": without, **times})
    assert [LogLine(LINE)] == bare({"MESSAGE": LINE, **times})


@pytest.mark.parametrize("time", ["", "soon", "9" * 400, "-5", "\u0665", True, None, 1e300, [1], "9" * 17])
def test_a_journals_time_that_no_clock_shows_is_not_used(time):
    assert [LogLine("INFO x")] == bare({"MESSAGE": "INFO x", "__REALTIME_TIMESTAMP": time})


@pytest.mark.parametrize("message", [None, [256], [-1], ["text"], [[91]], [1.5], {}, 7])
def test_a_journals_message_that_is_neither_text_nor_bytes_is_quarantined(message):
    assert QuarantineReason.INVALID_ENVELOPE == bare({"MESSAGE": message}).reason


def test_bare_text_is_a_line():
    assert [LogLine(LINE, 4)] == unwrap(LINE.encode(), broker_id=4)


@pytest.mark.parametrize("value", [LINE, json.dumps(FILEBEAT, indent=1)])
def test_a_byte_order_mark_is_no_part_of_a_message(value):
    assert [LINE] == [found.line for found in unwrap(b"\xef\xbb\xbf" + value.encode())]


def test_lines_sent_together_are_lines():
    assert [LogLine(LINE), LogLine("\tat x.Y"), LogLine(LINE)] == unwrap(f"{LINE}\r\n\tat x.Y\n\n{LINE}\n".encode())


def test_bytes_that_are_no_text_are_replaced():
    assert [LogLine("a\ufffdb")] == unwrap(b"a\xffb")


@pytest.mark.parametrize(
    "value",
    [None, b'{"message": "cut', b"{", b"[{]", b"{}", b'{"level": "INFO"}', b'{"message": 7}', b"[{}]", b'{"kind": "log", "source": "x", "at": 1}',
     b"[" * 3 + b"{" + b"[" * 100_000, b'{"resourceLogs": [7, {"scopeLogs": [null]}]}'],
)  # fmt: skip
def test_what_should_be_an_envelope_and_is_none_is_quarantined_or_a_line(value):
    found = unwrap(value)
    if value is not None and value.startswith(b"[[["):
        assert [LogLine(value.decode())] == found
    else:
        assert isinstance(found, Unreadable)
        assert QuarantineReason.INVALID_ENVELOPE == found.reason


def test_an_oversized_line_is_quarantined_as_such():
    found = bare(envelope(FileLine("server.log", 9, "x", is_oversized=True), None))
    assert Unreadable(QuarantineReason.OVERSIZED, "line 9 of server.log") == found


@pytest.mark.parametrize("kind", ["admin", "mark"])
def test_regroups_own_observations_are_no_lines(kind):
    body = {"source": "poll", "kind": kind, "at": 1795243262803, "message": LINE}
    assert Observation(kind, body) == bare(body)


def test_what_ship_logs_sends_comes_back():
    assert [LogLine(LINE, 3)] == bare(envelope(FileLine("server.log", 1, LINE), 3))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["message", "MESSAGE", "log", "body", "event", "original", "kind", "source", "at", "resourceLogs", "scopeLogs", "logRecords", "stringValue",
                     "logger", "timestamp", "instant", "epochSecond", "nanoOfSecond", "line", "broker_id", "fields"]), inner, max_size=4), max_leaves=12)  # fmt: skip


@given(JSON)
def test_any_json_is_lines_an_observation_or_quarantined(value):
    found = bare(value)
    assert isinstance(found, (Observation, Unreadable)) or all(isinstance(each.line, str) for each in found)


def test_a_line_from_an_envelope_is_an_event():
    [found] = bare(FILEBEAT)
    assert EventKind.STABILIZED == parse(found.line).event_kind


def test_lines_of_a_file_are_events_quarantined_or_nothing():
    old = line("Group leader [member.id: a, group.instance.id: None] failed to join before rebalance timeout, and the group "
               "couldn't proceed to next generationbecause no member joined.", "kafka.coordinator.group.GroupMetadata")  # fmt: skip
    texts = [LINE, "nothing", line(MESSAGE, at="1970-01-01 00:00:00,000"), old]
    lines = [PlacedLine("server.log", n, text, 9) for n, text in enumerate(texts, 1)]
    lines.append(PlacedLine("server.log", 5, LINE, 9, is_oversized=True))
    events, refused = line_rows(lines, cluster="c", layout=layout("default"), zone=zone("UTC"))
    assert [(1, 1), (4, 9)] == [(row["line_no"], row["broker_id"]) for row in events]
    assert [(3, "invalid_timestamp"), (5, "oversized")] == [(row["source_offset"], row["reason"]) for row in refused]
    assert texts[2].encode() == refused[0]["raw_value"]


@pytest.mark.parametrize("time", ["NaN", "-Infinity", "-1e308", "1e21", "1" + "0" * 20, "1" + "0" * 400])
def test_a_time_that_no_clock_shows_is_left_to_the_parser(time):
    (found,) = unwrap(f'{{"timestamp": {time}, "logger": "l", "message": "m"}}'.encode())
    assert found.line.endswith("] INFO m (l)")


@pytest.mark.parametrize("records", ["5", "true", '{"a": 1}', '"text"', "[5, null]"])
def test_lists_that_are_none_hold_no_line(records):
    for described in (f'[{{"scopeLogs": {records}}}]', f'[{{"scopeLogs": [{{"logRecords": {records}}}]}}]'):
        assert isinstance(unwrap(f'{{"resourceLogs": {described}}}'.encode()), Unreadable)


def test_half_a_surrogate_pair_within_json_within_json_is_replaced():
    inner = '{"message": "\\ud83d"}'
    (found,) = unwrap(json.dumps({"log": inner}).encode())
    assert "?" == found.line
