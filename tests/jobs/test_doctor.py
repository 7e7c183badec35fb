"""Missing things are named with the step that helps, against a broker with ACLs."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclBindingFilter, AclOperation, AdminClient, NewTopic
from deltalake import write_deltalake

from jobs import doctor as doctor_of
from jobs.cli import main
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.doctor import checks
from jobs.kafka.kafka_read import Range, RangeReader
from jobs.lab.broker import Broker
from jobs.tables.unread_lines import unread_lines
from pipelines.arrow_types import row_type
from pipelines.log_layouts import layout, zone
from pipelines.log_lines import PlacedLine, line_rows
from schemas.bronze import QUARANTINE
from testing import sample
from testing.waiting import wait_until
from tests.acls import allowed

TOPIC, EVENTS = "__consumer_offsets", "regroup-events"
RULES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with Broker(tmp_path_factory.mktemp("ruled"), overrides=RULES) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(120)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "__admin_client"})
        for _ in range(2):
            producer.produce(TOPIC, b"", b"", 0)
        assert producer.flush(120) == 0
        yield broker


@pytest.fixture
def granted(broker):
    """Allow everybody these operations on the topic and no other, until the test is over."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    made = []

    def grant(*operations: AclOperation) -> None:
        made.extend(AclBindingFilter(*allowed(admin, operation, TOPIC)) for operation in operations)

    yield grant
    unruled(admin, made)


def unruled(admin: AdminClient, rules: list[AclBindingFilter]) -> None:
    for found in admin.delete_acls(rules).values():
        found.result(120)
    wait_until(lambda: not any(admin.describe_acls(rule).result(120) for rule in rules))


@pytest.fixture
def doctor(broker, tmp_path, capsys):
    def run(bootstrap_servers: str = broker.bootstrap_servers) -> tuple[int, str]:
        code = main(["doctor", "--bootstrap-servers", bootstrap_servers, "--warehouse", str(tmp_path / "w")])
        return code, capsys.readouterr().out

    return run


def test_nothing_is_missing_where_all_is_allowed(doctor) -> None:
    code, printed = doctor()
    assert code == 0
    assert f"topic {TOPIC}: readable, 2 partition(s)" in printed


@pytest.mark.parametrize("right", [AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS])
def test_a_topic_that_may_not_be_read_is_named_with_the_right_to_grant(doctor, granted, right) -> None:
    granted(right)
    code, printed = doctor()
    assert code == 1
    assert f"Grant this principal READ on the topic {TOPIC}." in printed


@pytest.mark.parametrize("right", [AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS])
def test_a_right_that_is_withdrawn_is_no_gap_but_a_sentence(broker, granted, right) -> None:
    granted(right)
    reader = RangeReader(
        {"bootstrap.servers": broker.bootstrap_servers},
        TOPIC,
        [Range(partition=0, log_epoch=0, start=0, end=2)],
    )
    with pytest.raises(UserError, match=f"does not let this user read {TOPIC}: grant READ"):
        list(reader)
    assert reader.gaps == []


def test_the_right_to_send_marks_is_reported_but_not_required(doctor, broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    if EVENTS not in admin.list_topics(timeout=120).topics:
        admin.create_topics([NewTopic(EVENTS, 1, 1)])[EVENTS].result(120)
    assert "writing to regroup-events: allowed" in doctor()[1]
    rule = allowed(admin, AclOperation.READ, EVENTS)
    code, printed = doctor()
    unruled(admin, [AclBindingFilter(*rule)])
    assert code == 0
    assert "Grant WRITE on the topic regroup-events to the principal of `mark`" in printed


def test_a_topic_that_everybody_may_write_to_is_warned_of(doctor, broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    if EVENTS not in admin.list_topics(timeout=120).topics:
        admin.create_topics([NewTopic(EVENTS, 1, 1)])[EVENTS].result(120)
    assert "who writes to" not in doctor()[1]
    rule = allowed(admin, AclOperation.WRITE, EVENTS, principal="User:*")
    code, printed = doctor()
    unruled(admin, [AclBindingFilter(*rule)])
    assert code == 0
    assert "who writes to regroup-events: every principal may write: an ACL allows User:*" in printed
    assert "Grant WRITE only to the log shippers" in printed


def test_a_broker_that_is_not_there_is_named(doctor, monkeypatch) -> None:
    monkeypatch.setattr("jobs.doctor.TIMEOUT_S", 1.0)
    code, printed = doctor("127.0.0.1:1")
    assert code == 1
    assert "Check that 127.0.0.1:1 is correct and reachable" in printed


@pytest.mark.parametrize("is_required", [True, False])
def test_a_topic_of_which_nothing_arrives_is_not_readable(monkeypatch, is_required) -> None:
    class Silent:
        """A consumer that knows the brokers, but cannot reach the partition's leader, or there is none."""

        def __init__(self, options) -> None:
            self.topics = {TOPIC: SimpleNamespace(error=None, partitions={0: None})}

        def list_topics(self, topic, timeout):
            return self

        def assign(self, partitions) -> None:
            pass

        def poll(self, timeout) -> None:
            return None

        def close(self) -> None:
            pass

    monkeypatch.setattr(doctor_of, "Consumer", Silent)
    found = doctor_of._topic("topic", {}, TOPIC, required=is_required)
    assert (False if is_required else None, "nothing arrived within 10 s") == (found.is_ok, found.found)
    assert f"Check that partition 0 of {TOPIC} has a leader" in found.advice


def test_a_commit_torn_by_a_power_loss_is_named_and_stays_for_the_next_job(tmp_path) -> None:
    write_deltalake(tmp_path / "generations", pa.table({"n": [1]}))
    (commit,) = (tmp_path / "generations" / "_delta_log").glob("*.json")
    os.truncate(commit, 0)
    [found] = [each for each in checks(Settings(warehouse=tmp_path), None) if each.subject == "warehouse"]
    assert (False, f"{tmp_path} is damaged") == (found.is_ok, found.found)
    assert found.advice.startswith("The newest commit of the table generations is torn, as after a loss of power")
    assert f"The next job that writes deletes {commit}, and rows from Kafka, and" in found.advice
    assert commit.exists()


def test_log_lines_that_were_not_read_are_counted_with_the_setting_that_helps(tmp_path) -> None:
    message = "org.apache.kafka.coordinator.group.GroupMetadataManager said \x1b[31m"
    lines = [PlacedLine("server.log", number, f"21.11.2026 {number} {message}") for number in range(1, 8)]
    _, refused = line_rows(lines, cluster="c", layout=layout("default"), zone=zone("UTC"))
    rows = [dict.fromkeys(field.name for field in row_type(QUARANTINE)) | row for row in refused]
    sample.write(tmp_path, {"quarantine": rows})
    [found] = [each for each in checks(Settings(warehouse=tmp_path), None) if each.subject.startswith("log lines")]
    assert found.is_ok is None
    assert "log lines of server.log, cluster c" == found.subject
    assert found.found.startswith(
        "7 lines not read (unknown_layout), the last one in no known layout: 21.11.2026 3 org."
    )
    assert "␛[31m" in found.found
    assert "layout of this file in [[clusters.NAME.logs]]" in found.advice


def test_without_unread_lines_or_with_tables_of_an_older_regroup_there_is_no_finding(tmp_path) -> None:
    assert [] == unread_lines(tmp_path)
    write_deltalake(f"{tmp_path}/quarantine", pa.table({"cluster": ["c"], "reason": ["unknown_layout"]}))
    assert [] == unread_lines(tmp_path)
