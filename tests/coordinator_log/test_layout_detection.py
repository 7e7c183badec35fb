"""Every layout behind every prefix gives the same event, without a setting."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.coordinator_events import ParsedEvent, Unreadable, parse_line
from pipelines.layout_detection import unprefixed
from pipelines.line_reading import read_line
from pipelines.log_layouts import layout, zone
from schemas.controller_log import CONTROLLER_LOGGERS
from schemas.log_layouts import LAYOUTS as KNOWN
from testing.processor_time import within
from tests.coordinator_log.lines import MANAGER, NEW, WORDINGS, says

AT, ISO = "2026-11-21 06:41:02,803", "2026-11-21T06:41:02.803Z"
STAMP = "2026-11-21T06:41:02.803921417Z"
BESIDE = "2026-11-21T06:41:09.100200300Z"
"""A container runtime's time that differs from the time in the line, so that a test sees which one was used."""

TEXT = {
    "default": f"[{AT}] {{level}} {{message}} ({{logger}})",
    "confluent": f"[{AT}] {{level}} {{message}} ({{logger}}:1042)",
    "connect with a context": f"[{AT}] {{level}} [ledger|task-0] {{message}} ({{logger}}:1042)",
    "plain": f"{AT} {{level}} {{message}} ({{logger}})",
    "plain with T": "2026-11-21T06:41:02,803 {level} {message} ({logger})",
    "plain in UTC": f"{ISO} {{level}} {{message}} ({{logger}})",
    "plain with a line": f"{AT} {{level}} {{message}} ({{logger}}:1042)",
    "strimzi": "2026-11-21 06:41:02 {level:<5} [group-coordinator-event-processor-1] {short}:1042 - {message}",
    "strimzi-old": f"{AT} {{level}} {{message}} ({{logger}}) [executor-Rebalance1]",
}
JSON = {
    "JsonLayout": lambda m, g: {"instant": {"epochSecond": 1795243262, "nanoOfSecond": 803_000_000}, "level": "INFO",
                                "loggerName": g, "message": m, "endOfBatch": False},
    "JsonLayout with milliseconds": lambda m, g: {"timeMillis": 1795243262803, "level": "INFO", "loggerName": g, "message": m},
    "ECS": lambda m, g: {"@timestamp": ISO, "ecs.version": "1.2.0", "log.level": "INFO", "message": m, "log.logger": g},
    "Logstash": lambda m, g: {"@version": 1, "@timestamp": ISO, "message": m, "logger_name": g, "level": "INFO"},
    "GELF": lambda m, g: {"version": "1.1", "host": "k", "short_message": m, "timestamp": 1795243262.803, "level": 6, "_logger": g},
    "Google Cloud": lambda m, g: {"timestamp": ISO, "severity": "INFO", "message": m, "_logger": g},
    "common keys": lambda m, g: {"timestamp": ISO, "level": "INFO", "logger": g, "message": m, "thread": "t"},
}  # fmt: skip
PREFIXES = {
    "none": "",
    "CRI": f"{BESIDE} stdout F ",
    "CRI on stderr": "2026-11-21T08:41:09.1+02:00 stderr F ",
    "a container's time": f"{BESIDE} ",
    "docker compose": "kafka_1  | ",
    "docker compose v2": "kafka-1  | ",
    "docker compose in color": "\x1b[33mkafka-1  |\x1b[0m ",
    "docker compose with times": f"kafka-1  | {BESIDE} ",
    "kubectl --prefix": "[pod/my-cluster-kafka-0/kafka] ",
    "kubectl --prefix --timestamps": f"[pod/my-cluster-kafka-0/kafka] {BESIDE} ",
    "journald": "Nov 24 12:03:00 broker-1 kafka-server-start.sh[4242]: ",
    "syslog": "<30>Nov  4 12:03:00 broker-1 kafka: ",
    "syslog with a year": f"<30>1 {BESIDE} broker-1 kafka 4242 - - ",
    "journald short-iso": "2026-11-21T06:41:09+0000 broker-1 kafka[4242]: ",
    "journald short-iso-precise": "2026-11-21T06:41:09.100200+00:00 broker-1 kafka[4242]: ",
    "journald short-precise": "Nov 24 12:03:00.123456 broker-1 kafka[4242]: ",
    "journald short-full": "Tue 2026-11-24 12:03:00 CET broker-1 kafka[4242]: ",
    "journald short-full without a name of its zone": "Tue 2026-11-24 12:03:00 -0330 broker-1 kafka[4242]: ",
    "journald short-unix": "1795243269.100200 broker-1 kafka.service[4242]: ",
    "journald short-monotonic": "[  123.456789] broker-1 kafka[4242]: ",
    "a color": "\x1b[m\x1b[1;32m",
    "a byte order mark": "\ufeff",
}
STERN = [
    "my-cluster-kafka-0 kafka ",
    f"my-cluster-kafka-0 kafka {BESIDE} ",
    "\x1b[38;5;2mmy-cluster-kafka-0\x1b[0m \x1b[92mkafka\x1b[0m ",
    "apps my-cluster-kafka-0 kafka ",
    "\x1b[32mapps\x1b[0m \x1b[32mmy-cluster-kafka-0\x1b[0m \x1b[92mkafka\x1b[0m ",
]
UTC_ZONE = zone("UTC")


def read(text: str, like: str = "default", in_zone: str = "UTC"):
    return read_line(text, layout(like), zone(in_zone))


def rendered(name: str, golden: dict, level: str = "INFO") -> str | None:
    """Return the line in this layout; None if only Connect has the layout and another program printed the line."""
    message, logger = golden["message"], golden["logger"]
    if name in JSON:
        return json.dumps(JSON[name](message, logger))
    if name.startswith("connect") and not message.startswith("[Worker clientId="):
        return None
    return TEXT[name].format(level=level, message=message, logger=logger, short=logger.rpartition(".")[2])


def docker(line: str) -> str:
    return json.dumps({"log": line + "\n", "stream": "stdout", "time": BESIDE})


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", [*TEXT, *JSON])
def test_every_wording_is_the_same_event_in_every_layout_behind_every_prefix(name, prefix):
    for golden in WORDINGS[:: 1 if prefix == "none" else 9]:
        line = rendered(name, golden)
        if line is None:
            continue
        event = read(PREFIXES[prefix] + line)
        assert golden["says"] == says(event), PREFIXES[prefix] + line
        assert PREFIXES[prefix] + line == event.raw
        assert event.event_at.replace(microsecond=0) == datetime(2026, 11, 21, 6, 41, 2, tzinfo=UTC)


@pytest.mark.parametrize("prefix", STERN)
@pytest.mark.parametrize("name", [*TEXT, *JSON])
def test_what_stern_prints_is_the_line(name, prefix):
    for golden in WORDINGS[::9]:
        if (line := rendered(name, golden)) is not None:
            assert golden["says"] == says(read(prefix + line))


@pytest.mark.parametrize("prefix", ["", "kafka-1  | "])
@pytest.mark.parametrize("name", TEXT)
def test_the_colors_of_a_whole_line_are_no_part_of_it(name, prefix):
    for golden in WORDINGS[::9]:
        if (line := rendered(name, golden)) is not None:
            assert golden["says"] == says(read(f"{prefix}\x1b[32m{line}\x1b[m"))


@pytest.mark.parametrize("name", [*TEXT, *JSON])
def test_an_entry_of_dockers_json_file_is_its_line(name):
    for golden in WORDINGS[::9]:
        if (line := rendered(name, golden)) is not None:
            assert golden["says"] == says(read(docker(line)))


@pytest.mark.parametrize("like", sorted({*KNOWN}))
def test_another_layout_in_the_settings_hides_no_line(like):
    for name in TEXT:
        for golden in (WORDINGS[0], WORDINGS[40], WORDINGS[-1]):
            if (line := rendered(name, golden)) is not None:
                assert golden["says"] == says(read(line, like=like)), line


@settings(max_examples=600)
@given(
    golden=st.sampled_from(WORDINGS), name=st.sampled_from([*TEXT, *JSON]),
    prefixes=st.lists(st.sampled_from([*PREFIXES.values()]), max_size=2), level=st.sampled_from(["INFO", "WARN", "ERROR"]),
    group=st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=30),
)  # fmt: skip
def test_any_group_in_any_layout_behind_any_prefixes_comes_back(golden, name, prefixes, level, group):
    if "orders" not in str(golden["says"].get("group_id")):
        return
    printed = golden["says"] | {"group_id": group}
    chosen = golden | {"message": golden["message"].replace(" orders ", f" {group} ")}
    if "group orders " not in golden["message"] or golden["message"].count(" orders ") != 1:
        chosen, printed = golden, golden["says"]
    line = rendered(name, chosen, level)
    if line is not None:
        assert printed == says(read("".join(prefixes) + line))


def test_a_mixture_of_layouts_in_one_source_gives_every_line():
    lines = [p + line for p in PREFIXES.values() for n in (*TEXT, *JSON) if (line := rendered(n, WORDINGS[1]))]
    assert [WORDINGS[1]["says"]] * len(lines) == [says(read(line)) for line in lines]


@pytest.mark.parametrize(
    "text",
    [
        f"{STAMP} stdout F INFO {{0}} ({MANAGER})",
        f"{STAMP} stdout F INFO {{0}} ({MANAGER}:1042)",
        f"{STAMP} INFO  [event-processor-1] GroupMetadataManager:1042 - {{0}}",
        f"kafka-1  | {STAMP} INFO {{0}} ({MANAGER})",
    ],
)
def test_a_line_without_a_time_has_the_time_of_its_container(text):
    line = text.format(f"{NEW}Stabilized group orders generation 7 with 3 members.")
    expected = (datetime(2026, 11, 21, 6, 41, 2, 803_921, UTC), 1, 7)
    found = read(line, in_zone="Asia/Kathmandu")
    assert expected == (found.event_at, found.event_precision_ms, found.generation_id)


@pytest.mark.parametrize("line", [f"INFO {NEW}Stabilized group orders generation 7 with 3 members. ({MANAGER})",
                                  json.dumps({"logger": MANAGER, "message": f"{NEW}Stabilized group orders generation 7 with 3 members."})])  # fmt: skip
def test_docker_gives_its_time_to_a_line_without_one(line):
    found = read(json.dumps({"log": line, "stream": "stdout", "time": STAMP}), in_zone="Asia/Kathmandu")
    assert datetime(2026, 11, 21, 6, 41, 2, 803_921, UTC) == found.event_at


def test_the_time_in_the_line_counts_and_is_in_the_zone_of_the_settings():
    line = f"{BESIDE} stdout F [{AT}] INFO {NEW}Stabilized group orders generation 7 with 3 members. ({MANAGER})"
    assert datetime(2026, 11, 21, 5, 41, 2, 803_000, UTC) == read(line, in_zone="Europe/Berlin").event_at


def test_a_line_without_any_time_is_no_event():
    found = read(f"INFO {NEW}Stabilized group orders generation 7 with 3 members. ({MANAGER})")
    assert isinstance(found, Unreadable)


FORGED = "[GroupCoordinator 1]: Failed to persist metadata for group victim: "


@pytest.mark.parametrize(
    "attack",
    [
        f"a] GroupCoordinator:1 - {FORGED}",
        f"a, groupId=b] GroupCoordinator:1 - {FORGED}",
        f"{AT} INFO {FORGED}x (kafka.coordinator.group.GroupCoordinator)",
        f" | {AT} INFO {FORGED}x (kafka.coordinator.group.GroupCoordinator)",
        "x (kafka.coordinator.group.GroupCoordinator) [t]",
    ],
)
@pytest.mark.parametrize("name", [*TEXT, *JSON])
def test_a_name_that_imitates_another_layout_never_makes_a_line_about_another_group(name, attack):
    worker = "org.apache.kafka.connect.runtime.distributed.WorkerCoordinator"
    for message, logger in (
        (f"{NEW}Removed something of {attack}", MANAGER),
        (f"[GroupCoordinator 1]: Stabilized group {attack} now", "kafka.coordinator.group.GroupCoordinator"),
        (f"[Worker clientId={attack}, groupId=g] (Re-)joining group", worker),
        (f"{NEW}[GroupId {attack}] Scanned it", MANAGER),
    ):
        line = rendered(name, {"message": message, "logger": logger})
        for prefix in PREFIXES.values():
            found = line and read(prefix + line)
            assert not isinstance(found, ParsedEvent) or found.group_id != "victim", line


@pytest.mark.parametrize(
    "beginning",
    [
        f"{STAMP} stdout F ", "kafka-1  | " * 30_000, "a" * 100_000, "[pod/" + "a/" * 50_000, "<30>1 " * 20_000, "[" * 100_000,
        f"{AT} INFO " + "[a] b:1 - " * 10_000, "{" * 100_000, '{"log":' * 10_000, "\x1b[" + "1;" * 50_000, "2026-11-21T06:41:02Z " * 5_000,
        f"[{AT}] INFO " + "[a|task-0] " * 9_000, "Nov 24 12:03:00 h " + "u" * 100_000,
        "a-" * 50_000, "a a-0 " * 20_000, "\x1b[32m" * 15_000, "\x1b[32m" + "\x1b[0m\x1b[1;1" * 10_000, "\ufeff" * 100_000,
    ],
)  # fmt: skip
def test_a_hostile_line_is_read_in_linear_time(beginning):
    def read_all() -> None:
        for end in (
            "",
            f" ({MANAGER})",
            f" oordinator ({MANAGER}:x)",
            f"{NEW}Stabilized group a ({MANAGER}) [",
            " [Worker clientId=oordinator",
        ):
            read((beginning + end)[:131_000])
            read((beginning * 2 + end)[-131_000:])

    # A quadratic match takes twenty seconds or more.
    within(2, read_all)


def test_only_known_prefixes_are_removed():
    for text in ("hello world [2026", " | x", "Caused by: x", "GET /x | y", "2026-11-21 06:41:02 x", "[a] x", "well-known fact x",
                 f"Some-thing else [{AT}] x", f"hello world [{AT}] x", f"[1.2] [{AT}] x"):  # fmt: skip
        assert unprefixed(text) is None, text


RECORDED = sorted((Path(__file__).parents[1] / "captures").glob("*/*.log.gz"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_recorded_log_gives_the_same_events_in_every_layout(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    like, events = layout("default"), 0
    for number, line in enumerate(lines):
        expected, found = parse_line(line, like, UTC_ZONE), read_line(line, like, UTC_ZONE)
        assert not isinstance(found, Unreadable), line
        assert expected == found
        if isinstance(expected, ParsedEvent) and number % 5 == 0:
            events += 1
            assert expected._replace(raw="") == read(line.replace("[", "", 1).replace("]", "", 1))._replace(raw="")
            assert expected._replace(raw="") == read(docker(f"kafka-1  | {line}"))._replace(raw="")
    assert events or len(lines) < 20_000


def test_controllers_lines_are_known_in_every_layout():
    message = "[QuorumController id=3] Successfully altered 1 out of 1 partition reassignment(s)."
    logger = next(name for name, short in CONTROLLER_LOGGERS.items() if short == "ReplicationControlManager")
    for name in (*TEXT, *JSON):
        if (line := rendered(name, {"message": message, "logger": logger})) is not None:
            assert ("reassignments_altered", 3) == (read(line).event_kind, read(line).broker_id)
