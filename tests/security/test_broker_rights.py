"""A broker that trusts nobody: SASL/SCRAM over TLS, and everything is denied unless it is granted. The documented
permissions are enough, no other permission is used, and the password is found nowhere afterwards.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from deltalake import DeltaTable

from jobs.lab.broker import Broker
from jobs.processes.ports import free_ports
from jobs.setup.java import java_home
from testing.waiting import wait_until
from tests.acls import allowed

PASSWORD = "planted-7b1e5c0a94d2"
DOCUMENT = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
RIGHT = re.compile(r"^\| (\w+) \| `([^`]+)` \| (\w+) \| (needed|optional) \|", re.MULTILINE)


def keys(folder: Path) -> tuple[Path, Path]:
    """A key store for the broker, and its certificate for clients."""
    store, certificate = folder / "broker.p12", folder / "broker.pem"
    tool = [str(java_home() / "bin" / "keytool"), "-keystore", str(store), "-storepass", "keystore", "-alias", "broker"]
    made = [
        "-genkeypair",
        "-keyalg",
        "RSA",
        "-storetype",
        "PKCS12",
        "-dname",
        "CN=127.0.0.1",
        "-ext",
        "san=ip:127.0.0.1",
    ]
    subprocess.run([*tool, *made], check=True, capture_output=True)
    subprocess.run([*tool, "-exportcert", "-rfc", "-file", str(certificate)], check=True, capture_output=True)
    return store, certificate


class Guarded:
    """A broker whose SASL_SSL listener admits `regroup`, with only the permissions that are granted here."""

    def __init__(self, folder: Path) -> None:
        store, self.certificate = keys(folder)
        self.plain, self.secured, controller = free_ports(3)
        module = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        overrides = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.plain},SASL_SSL://127.0.0.1:{self.secured},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.plain},SASL_SSL://127.0.0.1:{self.secured}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": module,
            "ssl.keystore.location": store,
            "ssl.keystore.password": "keystore",
            "ssl.keystore.type": "PKCS12",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        self.broker = Broker(folder / "broker", overrides=overrides)
        self.broker._port = self.plain

    def allow(self, admin: AdminClient, kind: str, name: str, operation: str) -> None:
        # The client names the resource "broker" that Kafka names "cluster".
        of = ResourceType.BROKER if kind == "CLUSTER" else ResourceType[kind]
        allowed(admin, AclOperation[operation], name, kind=of, principal="User:regroup")

    def denied(self) -> list[str]:
        """Return what the authorizer denied to Regroup."""
        lines = self.broker.log_file.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if "User:regroup" in line and "is Denied" in line]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    made = Guarded(tmp_path_factory.mktemp("guarded"))
    with made.broker:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{made.plain}", "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1), NewTopic("regroup-events", 1, 1)])["orders"].result(120)
        scram = UserScramCredentialUpsertion(
            "regroup", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
        )
        admin.alter_user_scram_credentials([scram])["regroup"].result(120)
        member = Consumer({"bootstrap.servers": f"127.0.0.1:{made.plain}", "group.id": "billing"})
        member.subscribe(["orders"])
        wait_until(lambda: member.poll(0.2) or member.assignment())
        member.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        member.close()
        yield made, admin


def run(guarded: Guarded, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    config = folder / "regroup.toml"
    config.write_text(
        f"""
[clusters.kafka]
bootstrap_servers = "127.0.0.1:{guarded.secured}"
[clusters.kafka.kafka]
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "SCRAM-SHA-512"
"sasl.username" = "regroup"
"sasl.password" = "env:KAFKA_PASSWORD"
"ssl.ca.location" = "{guarded.certificate}"
""",
        encoding="utf-8",
    )
    environment = os.environ | {"KAFKA_PASSWORD": PASSWORD}
    given = ["--config", str(config), "--warehouse", str(folder / "warehouse")]
    return subprocess.run(
        [sys.executable, "-m", "jobs.cli", *command, *given],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def told_in(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


def test_the_documented_rights_are_enough_nothing_else_is_asked_and_the_password_is_nowhere(guarded, tmp_path) -> None:
    made, admin = guarded
    rights = RIGHT.findall(DOCUMENT)
    for kind, name, operation, _ in [right for right in rights if right[3] == "needed"]:
        made.allow(admin, kind, name, operation)
    ended = run(made, tmp_path, "ingest", "--once")
    assert ended.returncode == 0, ended.stderr
    assert DeltaTable(tmp_path / "warehouse" / "offset_commits").to_pyarrow_table().num_rows == 1
    assert [] == made.denied()

    for kind, name, operation, _ in [right for right in rights if right[3] == "optional"]:
        made.allow(admin, kind, name, operation)
    polled = run(made, tmp_path, "poll", "--once")
    asked = run(made, tmp_path, "doctor")
    assert polled.returncode == 0, polled.stderr
    assert "billing" in str(DeltaTable(tmp_path / "warehouse" / "admin_observations").to_pyarrow_table().to_pylist())
    assert [line for line in made.denied() if "Operation = WRITE" not in line] == [], "doctor asks who may send marks"

    described = "".join(each.stdout + each.stderr for each in (ended, polled, asked))
    assert PASSWORD not in described
    assert [] == told_in(tmp_path, PASSWORD.encode())
    assert [] == told_in(made.broker.directory, PASSWORD.encode())


def test_a_wrong_password_is_one_sentence(guarded, tmp_path, monkeypatch) -> None:
    made, _ = guarded
    monkeypatch.setattr(sys.modules[__name__], "PASSWORD", "another-3f2a")
    ended = run(made, tmp_path, "ingest", "--once")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "refuses these credentials" in ended.stderr
    assert "another-3f2a" not in ended.stderr
