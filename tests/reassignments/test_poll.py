"""The poll as a job: each observation is once in bronze and silver, and missing permissions are named."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import Mock

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka.errors import KafkaConnectionError

from jobs import up
from jobs.config.clusters import Cluster
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.kafka import admin_poll
from jobs.kafka.admin_client import translated
from jobs.kafka.admin_poll import Poller
from jobs.lab.broker import Broker
from jobs.poll import Following, observation_row
from jobs.processes.processes import Supervised
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.limits import Limits
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, COVERAGE
from schemas.silver import REASSIGNMENT_TABLES
from testing.waiting import wait_until


@pytest.fixture(scope="module")
def grouped(brokers):
    """A cluster with a topic and a group of one consumer."""
    options = {"bootstrap.servers": brokers[0].bootstrap_servers}
    admin = AdminClient(options | {"log_level": 0})
    admin.create_topics([NewTopic("read", 2, 1)])["read"].result(120)
    consumer = Consumer(options | {"group.id": "readers", "client.id": "reader"})
    consumer.subscribe(["read"])
    while not consumer.assignment():
        consumer.poll(0.1)
    yield options
    consumer.close()


def test_a_look_tells_groups_members_topic_ids_and_settings(grouped) -> None:
    poller = Poller(grouped)
    seen = poller.poll()
    assert {} == poller.errors
    (group,) = (each for each in seen if each["kind"] == "group" and each["group_id"] == "readers")
    assert ("consumer", "range") == (group["protocol_type"], group["assignor"])
    assert [("reader", [["read", 0], ["read", 1]])] == [(m["client_id"], m["assignment"]) for m in group["members"]]
    (topic,) = (each for each in seen if each["kind"] == "topic" and each["topic"] == "read")
    assert 2 == len(topic["partitions"])
    assert 22 == len(topic["topic_id"])
    (settings,) = (each["settings"] for each in seen if each["kind"] == "broker_settings")
    assert "5000" == settings["group.consumer.heartbeat.interval.ms"]
    again = poller.poll()
    assert ["reassignments"] == [each["kind"] for each in again], "what has not changed is not told again"
    poller.close()


def test_members_of_the_consumer_protocol_are_described_too(grouped) -> None:
    """With a consumer-protocol group that only commits, and one without members."""
    consumer = Consumer(
        grouped
        | {"group.id": "assigned", "client.id": "new", "group.protocol": "consumer", "auto.offset.reset": "latest"}
    )
    consumer.subscribe(["read"])
    while len(consumer.assignment()) < 2:
        consumer.poll(0.1)
    alone = Consumer(grouped | {"group.id": "alone"})
    alone.commit(offsets=[TopicPartition("read", 0, 1)], asynchronous=False)
    alone.close()
    poller, groups = Poller(grouped), {}

    def is_settled() -> bool:
        """The member confirms its assignment with a heartbeat, and until then the group reconciles."""
        consumer.poll(0.1)
        poller._full_at = float("-inf")
        groups.update({each["group_id"]: each for each in poller.poll() if each["kind"] == "group"})
        return groups.get("assigned", {}).get("state") == "Stable" and not poller.errors

    wait_until(is_settled)
    (member,) = groups["assigned"]["members"]
    assert ("consumer", "uniform") == (groups["assigned"]["type"], groups["assigned"]["assignor"])
    assert ("new", [["read", 0], ["read", 1]]) == (member["client_id"], member["assignment"])
    assert groups["assigned"]["coordinator"] in (1, 2, 3)
    assert ("Empty", []) == (groups["alone"]["state"], groups["alone"]["members"])
    consumer.close()
    poller.close()


POLLING = """
import sys
from jobs.config.errors import UserError
from jobs.kafka import admin_client, end_offsets
from jobs.kafka.admin_poll import Poller
admin_client.RESPONSE_WITHIN_MS, end_offsets.RESPONSE_WITHIN_S = 1_000, 1
poller = None
while poller is None:
    try:
        poller = Poller({"bootstrap.servers": sys.argv[1]})
    except UserError:
        print("no broker yet", flush=True)
while True:
    poller._full_at = float("-inf")
    poller.poll()
    print("failed" if poller.errors else "complete", flush=True)
"""


@pytest.mark.slow
def test_a_broker_that_pauses_ends_no_process(tmp_path) -> None:
    """librdkafka aborted the process when it described groups and a broker paused for longer than a request may take.
    The limit is a second here, and ten in the product.
    """
    with Broker(tmp_path / "broker") as broker, ExitStack() as stack:
        options = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(options | {"log_level": 0})
        admin.create_topics([NewTopic("read", 1, 1)])["read"].result(120)
        for n in range(40):
            consumer = Consumer(options | {"group.id": f"group-{n}"})
            consumer.commit(offsets=[TopicPartition("read", 0, 1)], asynchronous=False)
            consumer.close()
        output = tmp_path / "polls"
        polling = Supervised([sys.executable, "-P", "-c", POLLING, broker.bootstrap_servers], output=output)
        stack.callback(polling.stop)

        def next_is_complete() -> None:
            seen = len(output.read_bytes())
            wait_until(lambda: b"complete" in output.read_bytes()[seen:] or not polling.is_alive())

        for _ in range(6):
            next_is_complete()
            broker.pause()
            time.sleep(2)
            broker.resume()
        next_is_complete()
        assert polling.is_alive(), output.read_text()


def test_end_offsets_are_reported_from_before_a_group_changes_and_after(grouped) -> None:
    admin, poller, producer = AdminClient(grouped | {"log_level": 0}), Poller(grouped), Producer(grouped)
    admin.create_topics([NewTopic("behind", 2, 1)])["behind"].result(120)
    members = [Consumer(grouped | {"group.id": "laggards", "client.id": f"laggard-{n}"}) for n in range(2)]

    def joined(count: int) -> None:
        """Both keep polling, because a member that does not poll takes part in no rebalance."""
        members[count - 1].subscribe(["behind"])
        while not all(len(member.assignment()) == 2 // count for member in members[:count]):
            for member in members[:count]:
                member.poll(0.05)

    def ends() -> list[dict]:
        poller._full_at = float("-inf")  # request at once what a poll requests every quarter of a minute
        return [each for each in poller.poll() if (each["kind"], each.get("topic")) == ("end_offsets", "behind")]

    joined(1)
    assert [] == ends() + ends(), "nothing changed"
    producer.produce("behind", b"x", partition=1)
    assert 0 == producer.flush(120)
    joined(2)
    before, now = ends()
    assert ({"0": 0, "1": 0}, {"0": 0, "1": 1}) == (before["ends"], now["ends"])
    assert before["observed_at_ms"] < now["observed_at_ms"]
    assert [now["ends"]] == [each["ends"] for each in ends()], "and for a while"
    assert {} == poller.errors
    for member in members:
        member.close()
    poller.close()


def test_every_observation_is_one_row_and_what_was_not_polled_is_a_gap(grouped, spark, warehouse) -> None:
    cluster = Cluster(name="kafka", bootstrap_servers=grouped["bootstrap.servers"])
    settings = Settings(warehouse=warehouse, clusters=(cluster,), trigger_seconds=0.1)
    create_tables(spark, warehouse, (*BRONZE, *REASSIGNMENT_TABLES))
    printed: list[str] = []
    described = []
    for _ in range(2):
        poller = Poller(grouped)
        poll_before = poller.poll

        def poll(poll_before=poll_before) -> list:
            described.extend(seen := poll_before())
            return seen

        poller.poll = poll
        following = Following(
            spark=spark,
            settings=settings,
            cluster=cluster,
            poller=poller,
            building=threading.Lock(),
            say=printed.append,
        )
        following.once()
    rows = spark.read.format("delta").load(table_path(warehouse, ADMIN_OBSERVATIONS)).toArrow().to_pylist()
    assert sorted(observation_row("kafka", each)["body"] for each in described) == sorted(row["body"] for row in rows)
    key = ("observed_at", "source", "kind", "subject")
    assert len(rows) == len({tuple(row[name] for name in key) for row in rows})
    assert all(json.loads(row["body"])["kind"] == row["kind"] for row in rows)
    spans = spark.read.format("delta").load(table_path(warehouse, COVERAGE)).sort("from_offset").toArrow().to_pylist()
    assert [(False, None), (True, "nobody polled"), (False, None)] == [(s["is_gap"], s["gap_reason"]) for s in spans]
    assert all(a["to_offset"] == b["from_offset"] for a, b in itertools.pairwise(spans))
    assert [] == printed


def test_a_missing_permission_is_named_once_and_the_rest_goes_on(tmp_path) -> None:
    overrides = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker(tmp_path, overrides=overrides) as broker:
        options = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(options | {"log_level": 0})
        admin.create_topics([NewTopic("seen", 1, 1)])["seen"].result(120)
        rules = [
            AclBinding(
                ResourceType.BROKER,
                "kafka-cluster",
                ResourcePatternType.LITERAL,
                "User:ANONYMOUS",
                "*",
                operation,
                kind,
            )
            for operation, kind in (
                (AclOperation.CLUSTER_ACTION, AclPermissionType.ALLOW),
                (AclOperation.DESCRIBE, AclPermissionType.DENY),
            )
        ]
        for done in admin.create_acls(rules).values():
            done.result(120)
        poller, wanted = Poller(options), {"list_partition_reassignments", "describe_configs"}
        seen = []

        def is_refused() -> bool:
            # The controller responds when the ACLs are in its log, which the broker reads a little later.
            poller._full_at = float("-inf")
            seen.extend(poller.poll())
            return wanted == set(poller.errors)

        wait_until(is_refused)
        poller.close()
    assert all("uthoriz" in why for why in poller.errors.values()), poller.errors
    assert ["seen"] == [each["topic"] for each in seen if each["kind"] == "topic"]
    assert wanted == {each["call"] for each in seen if each["kind"] == "error"}


def test_a_group_whose_broker_did_not_answer_is_compared_with_the_poll_before(monkeypatch) -> None:
    """Around a failure of the coordinator, the end offsets are kept as around any other change."""
    topic = {"name": "read", "error_code": 0, "topic_id": None, "partitions": [
        {"partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    ]}  # fmt: skip
    listed = [{"group_id": "readers", "group_state": "Stable", "group_type": "consumer", "protocol_type": "consumer"}]
    client = Mock(**{"brokers.return_value": [1], "list_partition_reassignments.return_value": {}})
    client.describe_topics.return_value, client.describe_configs.return_value = [topic], {}
    client.list_groups.side_effect = [listed, KafkaConnectionError("closed"), listed]
    ends = Mock()
    monkeypatch.setattr(admin_poll, "connect", lambda _: client)
    monkeypatch.setattr(admin_poll, "admin", lambda _: ends)
    poller, numbers = Poller({}), iter((5, 6, 7))

    def polled(member_id: str) -> list[dict[str, int]]:
        partitions = [Mock(topic_name="read", partitions=[0])]
        member = Mock(member_id=member_id, instance_id=None, client_id="c", client_host="/h")
        member.assignment.topic_partitions = partitions
        group = Mock(group_id="readers", error_code=0, group_state="Stable", assignor_name="uniform", members=[member])
        offset = next(numbers)
        found = Mock(**{"result.return_value.offset": offset})
        ends.list_offsets.side_effect = lambda wanted, **_: dict.fromkeys(wanted, found)
        monkeypatch.setattr(admin_poll, "describe", lambda *_: [group])
        poller._full_at = float("-inf")
        return [each["ends"] for each in poller.poll() if each["kind"] == "end_offsets"]

    assert [] == polled("one")
    assert [] == polled("one")
    assert [{"0": 6}, {"0": 7}] == polled("two")


def test_unchanged_data_is_reported_again_a_day_later(monkeypatch) -> None:
    """Findings on `__consumer_offsets` look back seven days, and `maintain` deletes older observations."""
    partition = {"partition_index": 0, "leader_id": -1, "replica_nodes": [1], "isr_nodes": []}
    client = Mock()
    client.brokers.return_value = [1]
    client.list_partition_reassignments.return_value = {}
    client.describe_topics.return_value = [
        {"name": "__consumer_offsets", "error_code": 0, "topic_id": None, "partitions": [partition]}
    ]
    client.describe_configs.return_value = {"broker": {"1": {"min.insync.replicas": {"value": "2"}}}}
    client.list_groups.return_value = []
    clock = Mock(**{"time.return_value": 1_800_000_000.0, "monotonic.return_value": 1_000.0})
    monkeypatch.setattr(admin_poll, "connect", lambda _: client)
    monkeypatch.setattr(admin_poll, "admin", lambda _: Mock())
    monkeypatch.setattr(admin_poll, "time", clock)
    poller = Poller({})
    kinds = ["reassignments", "topic", "broker_settings", "group_list"]
    assert kinds == [each["kind"] for each in poller.poll()]
    clock.monotonic.return_value += 60_000.0
    assert ["reassignments"] == [each["kind"] for each in poller.poll()]
    clock.monotonic.return_value += 60_000.0
    assert kinds == [each["kind"] for each in poller.poll()]


def test_a_cluster_that_does_not_answer_is_one_sentence(monkeypatch) -> None:
    monkeypatch.setattr("jobs.kafka.kafka_client.RESPONSE_WITHIN_S", 0.3)
    with pytest.raises(UserError, match=r"No Kafka broker answers at 127\.0\.0\.1:1 "):
        Poller({"bootstrap.servers": "127.0.0.1:1"})


def test_security_options_mean_the_same_to_both_clients() -> None:
    found = translated(
        {
            "bootstrap.servers": "a:1", "security.protocol": "sasl_ssl", "sasl.mechanisms": "scram-sha-512",
            "sasl.username": "u", "sasl.password": "p", "ssl.ca.location": "/ca", "fetch.wait.max.ms": "5",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )  # fmt: skip
    wanted = {
        "bootstrap_servers": "a:1", "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u", "sasl_plain_password": "p", "ssl_cafile": "/ca", "ssl_check_hostname": False,
    }  # fmt: skip
    assert wanted == {name: value for name, value in found.items() if name in wanted}
    assert "fetch.wait.max.ms" not in found


def test_a_security_option_that_has_no_counterpart_is_refused() -> None:
    with pytest.raises(UserError, match=r"cannot use the Kafka option ssl\.ca\.pem"):
        translated({"ssl.ca.pem": "-----BEGIN"})


def test_a_table_of_an_earlier_version_gets_the_columns_it_lacks(spark, warehouse) -> None:
    earlier = replace(COVERAGE, columns=COVERAGE.columns[:8])
    create_tables(spark, warehouse, [earlier])
    create_tables(spark, warehouse, [COVERAGE])
    found = spark.read.format("delta").load(table_path(warehouse, COVERAGE)).schema
    assert list(COVERAGE.names) == found.names
    assert COVERAGE.columns[-1].comment == found["quarantined"].metadata["comment"]


def test_a_topic_that_a_leader_invented_is_reported_as_one_without_partitions(grouped) -> None:
    """The coordinator stores whatever the leader assigns; asking for the topic must not create it."""
    admin, poller = AdminClient(grouped | {"log_level": 0}), Poller(grouped)
    poller.poll()
    poller._assigned = {"nobody-made-this", "no/valid name", "read"}
    poller._seen = []
    poller._missing_topics()
    described = {each["topic"]: each["partitions"] for each in poller._seen if each["kind"] == "topic"}
    assert {"nobody-made-this": [], "no/valid name": []} == described
    assert "nobody-made-this" not in admin.list_topics(timeout=120).topics
    poller.close()


def test_groups_and_assignments_beyond_the_limits_are_counted_and_left_out(grouped) -> None:
    poller = Poller(grouped, Limits(name_bytes=4))
    (listed,) = (each for each in poller.poll() if each["kind"] == "group_list")
    assert [] == listed["groups"]
    assert listed["left_out"] >= 1
    poller.close()
    poller = Poller(grouped, Limits(resources=1))
    (group,) = (each for each in poller.poll() if each["kind"] == "group" and each["group_id"] == "readers")
    assert 2 == group["too_large"]
    assert [[]] == [member["assignment"] for member in group["members"]]
    poller.close()


def test_up_polls_the_other_clusters_if_one_cannot_be_polled(monkeypatch) -> None:
    def start(spark, settings, *_, **__) -> list[str]:
        if any(cluster.name == "refused" for cluster in settings.clusters):
            raise UserError("The poll cannot use an option.")
        return [cluster.name for cluster in settings.clusters]

    monkeypatch.setattr(up.poll, "start", start)
    names = ("first", "refused", "last")
    clusters = tuple(Cluster(name=name, bootstrap_servers="127.0.0.1:1") for name in names)
    said, runs = [], Mock()
    polls = up._polls(None, Settings(clusters=clusters), threading.Event(), said.append, threading.Lock(), runs)
    assert ["first", "last"] == polls
    assert ["Continuing without polls of refused: The poll cannot use an option."] == said
    runs.start.assert_called_once_with("poll")
