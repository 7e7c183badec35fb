"""One poll of a cluster through its Admin API: observations in the format of a capture's `admin.jsonl`.

Unchanged data is reported once a day. A refused call is reported as often, as an `error`, and the poll continues,
because every permission is optional.
"""

from __future__ import annotations

import json
import time
import uuid
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType

from jobs.kafka.admin_client import Client, attempt, connect, refused
from jobs.kafka.described_groups import CLASSIC, CONSUMER, STREAMS, describe
from jobs.kafka.end_offsets import KIND as END_OFFSETS
from jobs.kafka.end_offsets import EndOffsets
from jobs.kafka.group_members import classic_members, consumer_members, streams_members
from jobs.kafka.kafka_client import admin
from pipelines.limits import DEFAULT_LIMITS, Limits
from pipelines.reassignments.statements import RULES_MS
from schemas.records import OFFSETS_TOPIC

Observation = dict[str, Any]

SOURCE = "kafka-python"
Members = Callable[[Any, Limits], dict[str, Any]]
MEMBERS: Mapping[str, Members] = {CLASSIC: classic_members, CONSUMER: consumer_members, STREAMS: streams_members}
"""Type of a group → the function that reads its members. Groups of other types, such as share groups, are only listed.
"""
DESCRIBED_AT_ONCE = 200
"""Groups in one request, which bounds the size of its response."""
NO_SUCH_GROUP = 69
"""GROUP_ID_NOT_FOUND: the group has been deleted since it was listed."""
AGAIN_S = 86_400.0
"""Seconds after which unchanged data is reported again: readers look at the last days, and old rows are deleted."""
MOVING_S, RESTING_S = 1.0, 15.0
"""Seconds between two polls: while a partition is being reassigned, and otherwise."""

PERMISSIONS = {
    "list_partition_reassignments": "DESCRIBE on the cluster, to see reassignments",
    "describe_log_dirs": "DESCRIBE on the cluster, to see how many bytes of a reassignment are done",
    "list_groups": "DESCRIBE on the cluster or on groups, to see groups' states between two records",
    "describe_groups": "DESCRIBE on groups, and on the topics of streams groups, to see members between two records",
    "describe_topics": "DESCRIBE on topics, to see replicas and topic ids",
    "list_offsets": "DESCRIBE on topics, to see how far behind groups were around a rebalance",
    "describe_configs": (
        "DESCRIBE_CONFIGS on the cluster, to see the brokers' group settings, and on the topic __consumer_offsets, to "
        "see how many of its replicas must be in sync"
    ),
}
"""For each call: the permission that it needs, and its purpose."""

NAMED_TOPICS = 500
"""Highest number of topics that one poll requests by name."""

NO_SUCH_TOPIC = (3, 17)
"""UNKNOWN_TOPIC_OR_PARTITION and INVALID_TOPIC_EXCEPTION (`org.apache.kafka.common.protocol.Errors`)."""

SETTINGS = (
    "group.consumer.assignment.interval.ms",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.session.timeout.ms",
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "group.min.session.timeout.ms",
    "group.share.heartbeat.interval.ms",
    "group.streams.heartbeat.interval.ms",
    "group.streams.session.timeout.ms",
    "min.insync.replicas",
    "offsets.retention.minutes",
)
TOPIC_SETTINGS = ("min.insync.replicas",)
"""Settings of the offsets topic, which may differ from the brokers'."""


class Poller:
    """Polls one cluster repeatedly. `errors` are the failures of the last poll by call.

    Groups beyond `limits` are left out, and their number is in the observation `group_list`.

    Raises:
        UserError: an option has no counterpart, or no broker responds at the start.
    """

    def __init__(self, options: Mapping[str, str], limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._client: Client = connect(options)
        self._ends = EndOffsets(admin(options))
        self._reported: dict[tuple[str, str], tuple[bytes, float]] = {}
        self._assigned: set[str] = set()
        self._moving: dict[str, list[int]] = {}
        self._ended: dict[str, float] = {}
        self._seen: list[Observation] = []
        self._brokers: list[int] = []
        self._full_at = float("-inf")
        self.errors: dict[str, str] = {}

    def close(self) -> None:
        self._client.close()

    @property
    def is_moving(self) -> bool:
        """Return whether the last poll saw a reassignment, or one ended so recently that brokers may not know yet."""
        return bool(self._moving or self._ended)

    @property
    def pause_s(self) -> float:
        """Return the seconds until the next poll."""
        return MOVING_S if self.is_moving else RESTING_S

    def poll(self) -> list[Observation]:
        """Poll once and return the new observations in the order in which they were made."""
        self._seen, self.errors = [], {}
        self._brokers, why = attempt(self._client.brokers)
        if why is not None:
            self._failed("describe_cluster", why)
            return self._seen
        before = set(self._moving)
        self._reassignments()
        now = time.monotonic()
        self._ended |= dict.fromkeys(before - self._moving.keys(), now)
        self._topics(self._moving.keys() | self._ended.keys())
        self._ended = {t: at for t, at in self._ended.items() if t not in self._moving and now - at <= RULES_MS / 1000}
        self._log_dirs()
        if time.monotonic() - self._full_at >= RESTING_S:
            self._full_at = time.monotonic()
            self._topics(None)
            self._settings()
            self._list_groups()
            self._missing_topics()
            self._end_offsets()
        for kind, name in [key for key in self._reported if key[0] == "error" and key[1] not in self.errors]:
            del self._reported[kind, name]  # so that it is reported again if it returns
        return self._seen

    def _report(self, kind: str, subject: str, body: Mapping[str, Any], *, always: bool = False) -> bool:
        """Add the observation if it is new, a day old, or `always` is set. Return whether it differs from an earlier
        one.
        """
        # Digests limit the memory, because bodies contain names of any length that clients choose.
        digest = blake2b(json.dumps(body, sort_keys=True).encode(errors="surrogatepass"), digest_size=16).digest()
        before, at = self._reported.get((kind, subject), (None, 0.0))
        now = time.monotonic()
        if always or before != digest or now - at >= AGAIN_S:
            self._reported[kind, subject] = digest, now
            self._seen.append({"observed_at_ms": _now_ms(), "source": SOURCE, "kind": kind, **body})
        return before is not None and before != digest

    def _failed(self, call: str, why: str, subject: str = "") -> None:
        name = f"{call} {subject}".strip()
        self.errors[name] = why
        self._report("error", name, {"call": call, "text": why} | ({"subject": subject} if subject else {}))

    def _reassignments(self) -> None:
        found, why = attempt(self._client.list_partition_reassignments)
        if why is not None:
            self._failed("list_partition_reassignments", why)
            return
        ongoing = [
            {
                "topic": at.topic,
                "partition": at.partition,
                "replicas": each["replicas"],
                "adding": each["adding_replicas"],
                "removing": each["removing_replicas"],
            }
            for at, each in sorted(found.items())
        ]
        self._moving = defaultdict(list)
        for each in ongoing:
            self._moving[each["topic"]].append(each["partition"])
        self._report("reassignments", "", {"ongoing": ongoing}, always=True)

    def _topics(self, names: Iterable[str] | None) -> None:
        """Report topics: those with reassignments in every poll, all others when they change."""
        wanted = None if names is None else sorted(names)
        if wanted == []:
            return
        found, why = attempt(lambda: self._client.describe_topics(wanted))
        if why is not None:
            self._failed("describe_topics", why)
            return
        if wanted is None:
            self._ends.partitions = {t["name"]: len(t["partitions"]) for t in found if not t["error_code"]}
        for topic in sorted(found, key=lambda each: each["name"] or ""):
            if topic["error_code"]:
                continue
            partitions = [
                {
                    "partition": each["partition_index"],
                    "leader": each["leader_id"],
                    "replicas": each["replica_nodes"],
                    "isr": each["isr_nodes"],
                }
                for each in sorted(topic["partitions"], key=lambda each: each["partition_index"])
            ]
            body = {"topic": topic["name"], "topic_id": _topic_id(topic.get("topic_id")), "partitions": partitions}
            self._report("topic", topic["name"], body, always=wanted is not None)

    def _missing_topics(self) -> None:
        """Report topics that a group's leader assigned but that do not exist, as topics without partitions.

        The list of all topics omits those that this user may not describe. A request by name refuses them instead.
        """
        if not self._ends.partitions:
            return
        unknown = sorted(self._assigned - self._ends.partitions.keys())[:NAMED_TOPICS]
        if not unknown:
            return
        found, why = attempt(lambda: self._client.describe_topics(unknown))
        if why is not None:
            self._failed("describe_topics", why)
            return
        for topic in found:
            if topic["name"] and topic["error_code"] in NO_SUCH_TOPIC:
                self._report("topic", topic["name"], {"topic": topic["name"], "topic_id": None, "partitions": []})

    def _log_dirs(self) -> None:
        """Report the sizes of the partitions with reassignments, from every broker that responds."""
        if not self._moving:
            return
        answered, replicas = [], []
        for broker in self._brokers:
            found, why = attempt(partial(self._client.describe_log_dirs, dict(self._moving), brokers=[broker]))
            refusal = why or next((name for d in _dirs(found) if (name := refused(d["error_code"]))), None)
            if refusal is not None:
                self._failed("describe_log_dirs", refusal, f"broker {broker}")
                continue
            answered.append(broker)
            replicas += [
                {
                    "broker": broker,
                    "topic": topic["name"],
                    "partition": each["partition_index"],
                    "size": each["partition_size"],
                    "offset_lag": each["offset_lag"],
                    "future": each["is_future_key"],
                }
                for directory in _dirs(found)
                for topic in directory["topics"]
                for each in topic["partitions"]
            ]
        self._report("log_dirs", "", {"brokers": answered, "replicas": replicas}, always=True)

    def _settings(self) -> None:
        # One broker suffices, because all group coordinators should have the same settings.
        wanted = [ConfigResource(ConfigResourceType.BROKER, str(b), dict.fromkeys(SETTINGS)) for b in self._brokers[:1]]
        found, why = attempt(lambda: self._client.describe_configs(wanted, config_filter="all"))
        if why is not None:
            self._failed("describe_configs", why)
            return
        for broker, settings in found.get("broker", {}).items():
            values = {name: each["value"] for name, each in sorted(settings.items())}
            self._report("broker_settings", broker, {"broker": int(broker), "settings": values})
        if OFFSETS_TOPIC not in self._ends.partitions:
            return
        topic = [ConfigResource(ConfigResourceType.TOPIC, OFFSETS_TOPIC, dict.fromkeys(TOPIC_SETTINGS))]
        found, why = attempt(lambda: self._client.describe_configs(topic, config_filter="all"))
        if why is not None:
            self._failed("describe_configs", why, OFFSETS_TOPIC)
            return
        for name, settings in found.get("topic", {}).items():
            values = {setting: each["value"] for setting, each in sorted(settings.items())}
            self._report("topic_settings", name, {"topic": name, "settings": values})

    def _list_groups(self) -> None:
        """Report groups of every protocol type and state, and the members of groups that can be described."""
        listed: list[dict[str, Any]] = []
        coordinators: dict[str, int] = {}
        is_complete = True
        for broker in self._brokers:
            found, why = attempt(partial(self._client.list_groups, broker_ids=[broker]))
            if why is not None:
                self._failed("list_groups", why, f"broker {broker}")
                is_complete = False
                continue
            listed += found
            # A broker lists the groups that it coordinates.
            coordinators |= dict.fromkeys((each["group_id"] for each in found), broker)
        groups = [
            {
                "group_id": each["group_id"],
                "state": each.get("group_state"),
                "type": each.get("group_type"),
                "protocol_type": each["protocol_type"],
            }
            for each in sorted(listed, key=lambda each: each["group_id"])
            if len(each["group_id"].encode(errors="surrogatepass")) <= self._limits.name_bytes
        ][: self._limits.groups]
        left_out = {"left_out": len(listed) - len(groups)} if len(groups) < len(listed) else {}
        self._report("group_list", "", {"groups": groups} | left_out)
        self._assigned = set()
        if is_complete:  # otherwise a missing group may still exist
            self._forget_others({group["group_id"] for group in groups})
        for broker in self._brokers:
            its = [group for group in groups if coordinators[group["group_id"]] == broker]
            for group_type, members in MEMBERS.items():
                of_type = [group for group in its if (group["type"] or CLASSIC) == group_type]
                for first in range(0, len(of_type), DESCRIBED_AT_ONCE):
                    self._describe(broker, group_type, of_type[first : first + DESCRIBED_AT_ONCE], members)

    def _forget_others(self, known: Collection[str]) -> None:
        """Forget all groups but these."""
        self._reported = {key: seen for key, seen in self._reported.items() if key[0] != "group" or key[1] in known}
        self._ends.keep(known)

    def _describe(self, coordinator: int, group_type: str, groups: list[dict[str, Any]], members: Members) -> None:
        """Report the members of groups of one type that one broker coordinates."""
        listed = {group["group_id"]: group for group in groups}
        described, why = attempt(lambda: describe(self._client, coordinator, group_type, [*listed]))
        if why is not None:
            self._failed("describe_groups", why, f"broker {coordinator}")
            return
        for each in described:
            if why := refused(each.error_code):
                if each.error_code != NO_SUCH_GROUP:
                    self._failed("describe_groups", why, each.group_id)
                continue
            known = listed[each.group_id] | {"state": each.group_state, "coordinator": coordinator}
            self._reads(each.group_id, known | members(each, self._limits))

    def _reads(self, group_id: str, body: Observation) -> None:
        """Report a group, and keep the end offsets of the topics that it reads."""
        has_changed = self._report("group", group_id, body)
        topics = {topic for member in body["members"] for topic, _ in member.get("assignment", ())}
        self._assigned |= topics
        self._ends.reads(group_id, topics, has_changed=has_changed)

    def _end_offsets(self) -> None:
        found, why = self._ends.poll()
        if why is not None:
            self._failed("list_offsets", why)
        for topic, seen in found:
            row = {"observed_at_ms": seen.at_ms, "source": SOURCE, "kind": END_OFFSETS}
            self._seen.append(row | {"topic": topic, "ends": seen.ends})


def _dirs(found: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return [directory for broker in found or () for directory in broker["log_dirs"]]


def _topic_id(raw: Any) -> str | None:
    """Return a topic id as Kafka prints it; None if brokers have no topic ids (before 2.8)."""
    found = uuid.UUID(str(raw)) if raw else None
    return urlsafe_b64encode(found.bytes).decode().rstrip("=") if found and found.int else None


def _now_ms() -> int:
    return int(time.time() * 1000)
