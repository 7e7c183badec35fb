"""Every wording of every Kafka version, in every layout."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipelines.coordinator_events import ParsedEvent
from schemas.coordinator_log import NEW_WORDINGS, OLD_WORDINGS, WORKER_WORDINGS, EventKind
from tests.coordinator_log.lines import GOLDEN, MEMBER, NEW, OTHER, WORDINGS, line, parse, says

CAPTURE = Path(__file__).parents[1] / "captures" / "connect"
NAMES = [f"{i}-{w['versions']}-{w['says']['event_kind']}" for i, w in enumerate(WORDINGS)]

LAYOUTS = {
    "default": "[2026-11-21 06:41:02,803] {level} {message} ({logger})",
    "confluent": "[2026-11-21 06:41:02,803] {level} {message} ({logger}:1042)",
    "strimzi": "2026-11-21 06:41:02 {level:<5} [group-coordinator-event-processor-1] {short}:1042 - {message}",
    "strimzi-old": "2026-11-21 06:41:02,803 {level} {message} ({logger}) [executor-Rebalance1]",
    "connect": "[2026-11-21 06:41:02,803] {level} {message} ({logger}:1042)",
    "connect-old": "[2026-11-21 06:41:02,803] {level} {message} ({logger}:1042)",
    "[%d{ISO8601}][%t][%-5level] %logger - %msg%n": "[2026-11-21T06:41:02,803][main][{level:<5}] {logger} - {message}",
    r"\S+ (?:stdout|stderr) F \[(?P<at>[^\]]+)\] [A-Z]+ (?P<message>.*) \((?P<logger>[\w.$]+)\)": (
        "2026-11-21T06:41:02.803921Z stdout F [2026-11-21 06:41:02,803] {level} {message} ({logger})"
    ),
}


@pytest.mark.parametrize("golden", WORDINGS, ids=NAMES)
def test_a_wording_gives_its_columns(golden):
    assert golden["says"] == says(parse(line(golden["message"], golden["logger"])))


def test_every_wording_of_the_table_has_its_golden_line():
    declared = [(str(w.kind), w.logger) for w in (*OLD_WORDINGS, *NEW_WORDINGS, *WORKER_WORDINGS)]
    assert declared == [(w["says"]["event_kind"], w["logger"].rpartition(".")[2]) for w in WORDINGS]


def test_every_kind_of_event_has_a_wording():
    assert set(EventKind) == {w.kind for w in (*OLD_WORDINGS, *NEW_WORDINGS, *WORKER_WORDINGS)}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("level", ["INFO", "WARN", "ERROR", "DEBUG"])
def test_every_wording_says_the_same_in_every_layout(name, level):
    for golden in WORDINGS:
        short = golden["logger"].rpartition(".")[2]
        text = LAYOUTS[name].format(level=level, message=golden["message"], logger=golden["logger"], short=short)
        event = parse(text, like=name)
        assert golden["says"] == says(event), text
        assert (1000 if name == "strimzi" else 1) == event.event_precision_ms


def test_the_raw_line_is_kept():
    text = line(f"{NEW}Stabilized group orders generation 7 with 3 members.")
    assert text == parse(text).raw


def test_a_single_member_of_a_list_is_the_member_of_the_line():
    found = parse(line(f"{NEW}Group orders removed dynamic members who haven't joined: [{MEMBER}]"))
    assert (MEMBER, [MEMBER]) == (found.member_id, found.member_ids)


def test_client_ids_with_commas_do_not_split_members():
    odd = f"a, b{MEMBER}"
    found = parse(line(f"{NEW}Group orders removed dynamic members who haven't joined: [{odd}, {OTHER}]"))
    assert [odd, OTHER] == found.member_ids


def test_several_deleted_groups_are_one_line_without_a_group():
    found = parse(line(f"{NEW}The following groups were deleted: a, b. A total of 3 offsets were removed.",
                       "org.apache.kafka.coordinator.group.GroupCoordinatorShard"))  # fmt: skip
    assert (EventKind.DELETED, None) == (found.event_kind, found.group_id)


def test_a_recorded_log_of_4_3_gives_exactly_its_lifecycle_lines():
    lines = (GOLDEN / "broker-4.3.1.log").read_text(encoding="utf-8").splitlines()
    found = [e for text in lines if isinstance(e := parse(text), ParsedEvent)]
    lifecycle = {text for text in lines if "GroupMetadataManager)" in text or "__consumer_offsets" in text}
    assert {text for text in lifecycle if "since metadata was never loaded" not in text} == {e.raw for e in found}
    assert 39 == len(found)


@pytest.mark.parametrize("like", ["default", "connect", "strimzi"])
def test_a_workers_line_is_read_in_connects_own_layouts_whatever_the_brokers_use(like):
    for layout_of_workers in ("default", "connect"):
        for golden in WORDINGS[-len(WORKER_WORDINGS) :]:
            text = LAYOUTS[layout_of_workers].format(
                level="INFO", message=golden["message"], logger=golden["logger"], short=""
            )
            assert golden["says"] == says(parse(text, like=like))


def test_a_recorded_workers_log_gives_its_rounds_in_order():
    with gzip.open(CAPTURE / "connect-worker-1.log.gz", "rt", encoding="utf-8") as lines:
        found = [event for text in lines if (event := parse(text.rstrip("\n")))]
    assert {"mailer-writer-connect"} == {e.group_id for e in found}
    assert {"mailer-writer-connect-worker-1"} == {e.client_id for e in found}
    synced = [(e.generation_id, e.member_id[-4:]) for e in found if e.event_kind == EventKind.WORKER_SYNCED]
    assert synced == [(n, "4a36") for n in (9, 10, 11)] + [(n, "ee66") for n in range(13, 20)]
    delays = [e.duration_ms for e in found if e.event_kind == EventKind.WORKER_ASSIGNED]
    assert [40, 0, 0, 3954, 0, 10_000, 0, 0, 0, 0] == delays
