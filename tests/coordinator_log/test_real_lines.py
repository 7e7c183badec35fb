"""What a real broker prints of groups with strange names."""

from __future__ import annotations

import time

from confluent_kafka import Consumer

from pipelines.coordinator_events import ParsedEvent
from schemas.coordinator_log import EventKind
from tests.coordinator_log.lines import NEW, line, parse

STRANGE = [
    "x generation 5 with 3 members.",
    "y in state PreparingRebalance with old generation 5 (reason: Adding new member z; client reason: not provided).",
    line(f"{NEW}Stabilized group victim generation 5 with 3 members."),
    "a] Member b has left group through explicit `LeaveGroup` request; client reason: c",
    "é \u2028 \t \x1b[31m 😀 %d {} \\ (org.apache.kafka.coordinator.group.GroupMetadataManager)",
    "victim with generation 9 is now empty. (org.apache.kafka.coordinator.group.GroupMetadataManager)\r",
    "a  ",
]
LIFE = [
    EventKind.MEMBER_ID_GIVEN,
    EventKind.MEMBER_ADDED,
    EventKind.PREPARING,
    EventKind.STABILIZED,
    EventKind.ASSIGNMENT_RECEIVED,
    EventKind.LEFT,
    EventKind.PREPARING,
    EventKind.EMPTY,
]


def test_a_group_of_any_name_has_its_whole_life_in_the_log(ruled_broker):
    for group in STRANGE:
        consumer = Consumer(
            {"bootstrap.servers": ruled_broker.bootstrap_servers, "group.id": group, "client.id": "c in group d"}
        )
        try:
            consumer.subscribe(["read"])
            until = time.monotonic() + 60
            while not consumer.assignment() and time.monotonic() < until:
                consumer.poll(0.1)
        finally:
            consumer.close()
    text = ruled_broker.log_file.read_bytes().decode()
    found = [e for each in text.split("\n") if isinstance(e := parse(each), ParsedEvent) and e.group_id]
    assert dict.fromkeys(STRANGE, LIFE) == {
        group: [e.event_kind for e in found if e.group_id == group] for group in {e.group_id for e in found}
    }
    assert all((e.member_id or e.leader_member_id or "c in group d-").startswith("c in group d-") for e in found)
