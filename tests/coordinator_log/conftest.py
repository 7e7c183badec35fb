"""One real broker for the folder: everybody may do everything, except on the topics that have ACLs."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from jobs.lab.broker import Broker


def rule(kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    everybody, anywhere = "User:ANONYMOUS", "*"
    return AclBinding(kind, name, ResourcePatternType.LITERAL, everybody, anywhere, operation, AclPermissionType.ALLOW)


@pytest.fixture(scope="session")
def ruled_broker(tmp_path_factory):
    """Topics `events` and `marks` (WRITE alone), `refused` (READ alone), and `followed`, `other`, `read` without rules."""
    overrides = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": 0,
    }
    topics = ("events", "marks", "followed", "other", "read", "refused")
    with Broker(tmp_path_factory.mktemp("broker"), overrides=overrides) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for done in admin.create_topics([NewTopic(name, 1, 1) for name in topics]).values():
            done.result(120)
        rules = [
            rule(ResourceType.TOPIC, "events", AclOperation.WRITE),
            rule(ResourceType.TOPIC, "marks", AclOperation.WRITE),
            rule(ResourceType.TOPIC, "refused", AclOperation.READ),
            # One ACL for the cluster ends "everyone if no ACL": operations of the broker and the tests must be allowed
            # by name.
            *(
                rule(ResourceType.BROKER, "kafka-cluster", operation)
                for operation in (AclOperation.CLUSTER_ACTION, AclOperation.ALTER, AclOperation.DESCRIBE)
            ),
        ]
        for done in admin.create_acls(rules).values():
            done.result(120)
        yield broker


@pytest.fixture
def servers(ruled_broker):
    return ruled_broker.bootstrap_servers


@pytest.fixture
def allow_reading(servers):
    """Let everybody read a topic that only allowed writing."""

    def allow(topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": servers})
        for done in admin.create_acls([rule(ResourceType.TOPIC, topic, AclOperation.READ)]).values():
            done.result(120)

    return allow
