"""`regroup doctor`: check what the other commands need, and describe how to fix each missing thing."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from dashboards.lake.address import ObjectStore
from dashboards.lake.lake import LakeError
from jobs.config.clusters import Cluster
from jobs.config.errors import UserError
from jobs.config.permissions import warnings
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.installation.build_info import described
from jobs.lake import lake
from jobs.setup.jars import jars
from jobs.setup.java import java_home
from jobs.states.stored_states import writer
from jobs.tables.create_tables import refuse_newer_tables
from jobs.tables.disk.hard_links import has_hard_links
from jobs.tables.disk.torn import torn_files
from jobs.tables.location import location
from jobs.tables.table_facts import exists
from jobs.tables.unread_lines import unread_lines
from schemas.bronze import BRONZE
from schemas.records import OFFSETS_TOPIC
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.written import count

TABLES = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES)
TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check. `is_ok` None means optional and absent. `advice` is the fix, if there is one."""

    subject: str
    is_ok: bool | None
    found: str
    advice: str = ""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print one line for each finding; return 1 if something required is missing, else 0."""
    findings = []
    for finding in checks(settings, args.cluster, args.config):
        mark = {True: "ok      ", None: "optional", False: "MISSING "}[finding.is_ok]
        say(f"{mark}  {finding.subject}: {finding.found}")
        if finding.advice:
            say(f"          -> {finding.advice}")
        findings.append(finding)
    missing = sum(finding.is_ok is False for finding in findings)
    say(f"{missing} required thing(s) missing" if missing else "nothing required is missing")
    return 1 if missing else 0


def checks(settings: Settings, cluster: str | None, file: Path | None = None) -> Iterator[Finding]:
    """Yield the findings of the machine, then of the warehouse, then of each Kafka cluster."""
    yield Finding(subject="Regroup", is_ok=True, found=described().removeprefix("regroup "))
    yield Finding(subject="Python", is_ok=True, found=f"{platform.python_version()} ({sys.executable})")
    yield _finding("Java", lambda: str(java_home()))
    yield _finding("jars of Delta Lake", lambda: f"{len(jars('delta'))} verified")
    if settings.address is None:
        yield _warehouse(settings.warehouse)
        yield from _unread(settings.warehouse)
    else:
        yield from _address(settings, settings.address)
    for warning in warnings(file, settings):
        yield Finding(subject="permissions", is_ok=None, found="others have access", advice=warning)
    chosen = [c for c in settings.clusters if cluster in (None, c.name)]
    if not chosen:
        yield Finding(
            subject="Kafka",
            is_ok=None,
            found="no cluster configured",
            advice="Give --bootstrap-servers HOST:PORT or a [clusters.NAME] table in the settings file. "
            "Without a cluster, `regroup up` starts its own lab.",
        )
    for one in chosen:
        yield from _cluster(one)


def _finding(subject: str, response: Callable[[], str]) -> Finding:
    try:
        return Finding(subject=subject, is_ok=True, found=response())
    except UserError as error:
        return Finding(subject=subject, is_ok=False, found="not there", advice=str(error))


def _warehouse(warehouse: Path) -> Finding:
    nearest = next(p for p in (warehouse.absolute(), *warehouse.absolute().parents) if os.access(p, os.F_OK))
    if not os.access(nearest, os.W_OK):
        advice = f"Make {nearest} writable for this user, or name another folder with --warehouse."
        return Finding(subject="warehouse", is_ok=False, found=f"{warehouse} cannot be written", advice=advice)
    if not nearest.is_dir():
        advice = f"{nearest} is a file: name another folder with --warehouse."
        return Finding(subject="warehouse", is_ok=False, found=f"{warehouse} cannot be a folder", advice=advice)
    if torn := next(torn_files(warehouse), None):
        advice = (
            f"{torn.sentence} Free space if the disk is full. The next job that writes deletes {torn.path}, and "
            f"{torn.then}."
        )
        return Finding(subject="warehouse", is_ok=False, found=f"{warehouse} is damaged", advice=advice)
    try:
        refuse_newer_tables(warehouse)
    except UserError as error:
        return Finding(subject="warehouse", is_ok=False, found=f"{warehouse} is too new", advice=str(error))
    if (there := location(warehouse)) is not None:
        return Finding(
            subject="warehouse", is_ok=True, found=f"{warehouse}, for tables in {there}, which were not read"
        )
    found = f"{warehouse}, {sum(exists(warehouse, table) for table in TABLES)} of {len(TABLES)} tables"
    if not has_hard_links(warehouse):
        found += ", written by Spark, because its file system has no hard links"
    return Finding(subject="warehouse", is_ok=True, found=found)


def _address(settings: Settings, store: ObjectStore) -> Iterator[Finding]:
    """Yield whether the warehouse in an object store can be read, and which process writes there."""
    where = settings.warehouse_text
    try:
        known, found = len(lake(settings).versions()), writer(store)
    except (LakeError, UserError) as error:
        yield Finding(subject="warehouse", is_ok=False, found=f"{where} cannot be read", advice=str(error))
        return
    yield Finding(subject="warehouse", is_ok=True, found=f"{where}, {count(known, 'table')}")
    if found is not None:
        yield Finding(subject="writer", is_ok=None, found=f"{found} may write there now, and only one process may")


def _unread(warehouse: Path) -> Iterator[Finding]:
    """Yield a finding for each source with log lines that may be lifecycle lines but are not known."""
    try:
        found = unread_lines(warehouse)
    except (OSError, UserError):
        return  # `_warehouse` describes what is wrong with the tables
    for each in found:
        subject = f"log lines of {each.source}, cluster {each.cluster}"
        text = f"{count(each.lines, 'line')} not read ({each.reason}), the last one {each.detail}"
        yield Finding(subject=subject, is_ok=None, found=text, advice=each.remedy)


def _cluster(cluster: Cluster) -> Iterator[Finding]:
    name = f"cluster {cluster.name}"
    try:
        options = cluster.client() | {"socket.timeout.ms": "8000", "log_level": "0"}
        admin = AdminClient(dict(options))
        metadata = admin.list_topics(timeout=TIMEOUT_S)
    except UserError as error:
        yield Finding(subject=name, is_ok=False, found="a setting refers to a missing value", advice=str(error))
        return
    except KafkaException as error:
        yield _unreachable(name, cluster, error.args[0])
        return
    yield Finding(subject=name, is_ok=True, found=f"{len(metadata.brokers)} broker(s) at {cluster.bootstrap_servers}")
    yield _topic(f"{name}, topic {OFFSETS_TOPIC}", options, OFFSETS_TOPIC, required=True)
    for topic in cluster.event_topics():
        yield _topic(f"{name}, topic {topic}", options, topic, required=False)
        if topic in metadata.topics and (warning := _open_to_all(f"{name}, who writes to {topic}", admin, topic)):
            yield warning
    if cluster.events_topic in metadata.topics:
        yield _writing(f"{name}, writing to {cluster.events_topic}", admin, cluster.events_topic)
    yield _groups(name, admin)


def _unreachable(name: str, cluster: Cluster, error: KafkaError) -> Finding:
    advice = (
        f"Check that {cluster.bootstrap_servers} is correct and reachable from this machine, and check the security "
        f"options in [clusters.{cluster.name}.kafka]."
    )
    return Finding(subject=name, is_ok=False, found=error.str(), advice=advice)


def _topic(subject: str, options: dict[str, str], topic: str, *, required: bool) -> Finding:
    """Check that one fetch from the topic's first partition succeeds."""
    reader = Consumer(
        options | {"group.id": "regroup-doctor", "enable.auto.commit": "false", "enable.partition.eof": "true"}
    )
    try:
        found = reader.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        if found.error is not None:
            return _refused(subject, topic, found.error, required=required)
        reader.assign([TopicPartition(topic, 0, 0)])
        message = reader.poll(TIMEOUT_S)
        if message is None:
            return Finding(
                subject=subject,
                is_ok=False if required else None,
                found=f"nothing arrived within {TIMEOUT_S:.0f} s",
                advice=f"Check that partition 0 of {topic} has a leader, and that its address is reachable from here.",
            )
        error = message.error()
        if error is not None and error.code() not in (KafkaError._PARTITION_EOF, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001 - librdkafka's own name for it
            return _refused(subject, topic, error, required=required)
        return Finding(subject=subject, is_ok=True, found=f"readable, {len(found.partitions)} partition(s)")
    except KafkaException as error:
        return _refused(subject, topic, error.args[0], required=required)
    finally:
        reader.close()


def _refused(subject: str, topic: str, error: KafkaError, *, required: bool) -> Finding:
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        advice = (
            "Nothing to do: Kafka creates it when the first group commits or joins, and `ingest` waits for it."
            if required
            else "Ship broker logs to this topic. Without them, the start of a rebalance is known only within bounds."
        )
        return Finding(subject=subject, is_ok=None, found="not there", advice=advice)
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        advice = f"Grant this principal READ on the topic {topic}."
        return Finding(
            subject=subject, is_ok=False if required else None, found="not allowed to read it", advice=advice
        )
    return Finding(
        subject=subject, is_ok=False if required else None, found=error.str(), advice="See the broker's log."
    )


def _writing(subject: str, admin: AdminClient, topic: str) -> Finding:
    """Check the permission that `mark` and `ship-logs` need. They may run as a different principal."""
    asked = admin.describe_topics(
        TopicCollection([topic]), include_authorized_operations=True, request_timeout=TIMEOUT_S
    )
    try:
        allowed = asked[topic].result().authorized_operations or ()
    except KafkaException as error:
        return Finding(subject=subject, is_ok=None, found=error.args[0].str(), advice="See the broker's log.")
    if AclOperation.WRITE in allowed:
        return Finding(subject=subject, is_ok=True, found="allowed: `mark` and `ship-logs` can run as this principal")
    advice = f"Grant WRITE on the topic {topic} to the principal of `mark` or `ship-logs`. No other command needs it."
    return Finding(subject=subject, is_ok=None, found="not allowed", advice=advice)


def _open_to_all(subject: str, admin: AdminClient, topic: str) -> Finding | None:
    """Return a warning if every principal may write to the topic.

    Return None if not, or if this principal may not list the ACLs.
    """
    anyone: Any = None  # The client accepts None here, although its types do not.
    writers = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.MATCH, anyone, anyone, AclOperation.ANY, AclPermissionType.ALLOW
    )
    try:
        acls = admin.describe_acls(writers, request_timeout=TIMEOUT_S).result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.SECURITY_DISABLED:
            return None
        found = "every principal may write: the brokers have no authorizer"
    else:
        grants = (AclOperation.WRITE, AclOperation.ALL)
        if not any(acl.principal == "User:*" and acl.operation in grants for acl in acls):
            return None
        found = "every principal may write: an ACL allows User:*"
    advice = (
        "A writer of this topic can forge the log of any coordinator. Grant WRITE only to the log shippers, or bind "
        "sources with [[clusters.NAME.event_sources]]."
    )
    return Finding(subject=subject, is_ok=None, found=found, advice=advice)


def _groups(name: str, admin: AdminClient) -> Finding:
    subject = f"{name}, list of groups"
    try:
        listed = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result()
    except KafkaException as error:
        return Finding(
            subject=subject,
            is_ok=None,
            found=error.args[0].str(),
            advice="Grant DESCRIBE on the cluster to observe group states between two records. Nothing else needs it.",
        )
    return Finding(subject=subject, is_ok=True, found=f"{len(listed.valid)} group(s) visible")
