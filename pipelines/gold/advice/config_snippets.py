"""Configuration to paste for each action, by client library and place, and the preconditions of each action.

Sources: KIP-345 (static membership; Connect has none), KIP-429 (cooperative), KIP-848 (consumer protocol), and the
configuration references of the clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.churn import Churn
from schemas.states import AdviceAction

COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"

POD_NAME = """\
# Use a StatefulSet: its pods keep their names. Pods of a Deployment do not, so each restart would be a new instance.
env:
  - name: GROUP_INSTANCE_ID
    valueFrom:
      fieldRef:
        fieldPath: metadata.name"""


def _clients(options: Mapping[str, str], *, streams: bool = True) -> dict[str, str]:
    lines = "\n".join(f"{key}={value}" for key, value in options.items())
    out = {
        "java": lines,
        "librdkafka": lines,
        "spring": "\n".join(f"spring.kafka.consumer.properties.{key}={value}" for key, value in options.items()),
    }
    if streams:
        out["streams"] = "\n".join(f"consumer.{key}={value}" for key, value in options.items())
    return out


def settings(action: AdviceAction, session_timeout_ms: int | None = None) -> dict[str, str]:
    """Return snippets by client library and place. `session_timeout_ms` is set if the action includes a timeout."""
    timeout = {} if session_timeout_ms is None else {"session.timeout.ms": str(session_timeout_ms)}
    if action == AdviceAction.STATIC_MEMBERSHIP:
        found = _clients({"group.instance.id": "${GROUP_INSTANCE_ID}", **timeout})
        return found | {"kubernetes": POD_NAME, "connect": "# Kafka Connect has no static membership."}
    if action == AdviceAction.COOPERATIVE_ASSIGNOR:
        return _cooperative()
    if action in (AdviceAction.CONSUMER_PROTOCOL, AdviceAction.CONSUMER_PROTOCOL_STATIC):
        return _consumer_protocol(is_static=action == AdviceAction.CONSUMER_PROTOCOL_STATIC)
    if action in (AdviceAction.RAISE_SESSION_TIMEOUT, AdviceAction.LOWER_SESSION_TIMEOUT):
        heartbeat = (
            {} if session_timeout_ms is None else {"heartbeat.interval.ms": str(min(3_000, session_timeout_ms // 3))}
        )
        return _clients(timeout | heartbeat)
    return {}


def faster_heartbeats(heartbeat_interval_ms: int) -> dict[str, str]:
    """Return snippets for a shorter heartbeat interval."""
    return _clients({"heartbeat.interval.ms": str(heartbeat_interval_ms)})


def longer_polls(max_poll_interval_ms: int) -> dict[str, str]:
    """Return snippets for a longer poll interval."""
    found = _clients({"max.poll.interval.ms": str(max_poll_interval_ms)})
    return found | {"java": found["java"] + "\n# or fewer records per poll:\nmax.poll.records=100"}


def connect_delay(delay_ms: int) -> dict[str, str]:
    """Return the snippet for another rebalance delay of Kafka Connect."""
    return {"connect": f"scheduled.rebalance.max.delay.ms={delay_ms}"}


def _cooperative() -> dict[str, str]:
    key = "partition.assignment.strategy"
    first, then = f"{key}={COOPERATIVE},{RANGE}", f"{key}={COOPERATIVE}"
    rolling = f"# 1. restart every member, one by one, with:\n{first}\n# 2. then again, one by one, with:\n{then}"
    spring = "spring.kafka.consumer.properties."
    return {
        "java": rolling,
        "spring": rolling.replace(key, spring + key),
        "librdkafka": f"# cannot mix with eager members: stop all, change this, start\n{key}=cooperative-sticky",
        "streams": "# Kafka Streams has been cooperative since 2.4; nothing to set.",
        "connect": "# Kafka Connect has been incremental since 2.3; nothing to set.",
    }


def _consumer_protocol(*, is_static: bool) -> dict[str, str]:
    options = {"group.protocol": "consumer"} | ({"group.instance.id": "${GROUP_INSTANCE_ID}"} if is_static else {})
    remove = "# and remove partition.assignment.strategy, session.timeout.ms and heartbeat.interval.ms"
    found = {name: f"{text}\n{remove}" for name, text in _clients(options, streams=False).items()}
    found["broker"] = (
        "# brokers 4.0 or newer; they set heartbeats and sessions\ngroup.consumer.heartbeat.interval.ms=5000\n"
        "group.consumer.session.timeout.ms=45000"
    )
    return found | ({"kubernetes": POD_NAME} if is_static else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A precondition. `state` is met, missing or unknown."""

    state: str
    text: str

    def __str__(self) -> str:
        return f"{self.state}: {self.text}"


def preconditions(action: AdviceAction, churn: Churn, latencies: Latencies) -> list[Condition]:
    """Return the preconditions of an action. Records show for some of them whether they are met."""
    out = []
    if action in (AdviceAction.STATIC_MEMBERSHIP, AdviceAction.CONSUMER_PROTOCOL_STATIC):
        out += _nameable(churn)
        text = "members do not explicitly remove themselves from the group when they stop"
        out.append(Condition(state="unknown", text=text))
    if action == AdviceAction.COOPERATIVE_ASSIGNOR and latencies.is_librdkafka:
        out.append(
            Condition(
                state="unknown",
                text="the whole group can be stopped once, because librdkafka cannot mix eager and cooperative members "
                "(librdkafka is inferred: these clients send no reasons)",
            )
        )
    if action == AdviceAction.COOPERATIVE_ASSIGNOR and not latencies.is_librdkafka:
        out.append(Condition(state="unknown", text="every member can be restarted twice, one by one"))
    if action == AdviceAction.LOWER_HEARTBEAT_INTERVAL:
        text = "heartbeat.interval.ms has the observed value (inferred: no record contains it)"
        out.append(Condition(state="unknown", text=text))
    if action in (AdviceAction.CONSUMER_PROTOCOL, AdviceAction.CONSUMER_PROTOCOL_STATIC):
        seen = latencies.broker.heartbeat_ms is not None
        text = "brokers are 4.0 or newer, with the consumer protocol enabled"
        out.append(Condition(state="met" if seen else "unknown", text=text))
        client = "librdkafka 2.12 or newer" if latencies.is_librdkafka else "Java clients 4.0 or newer"
        out.append(Condition(state="unknown", text=f"every member uses {client} and no custom assignor"))
    return out


def _nameable(churn: Churn) -> list[Condition]:
    """Return the condition that each instance has a unique name that survives a restart."""
    names = [i.memberships[-1].client_id for i in churn.instances if i.memberships[-1].gone_at is None] or [
        i.memberships[-1].client_id for i in churn.instances
    ]
    renamed = [i.name for i in churn.instances if i.is_renamed]
    if renamed:
        return [
            Condition(
                state="missing",
                text=f"names that survive a restart: {renamed[0]} had another name before, like pods of a Deployment; "
                "a StatefulSet keeps names",
            )
        ]
    if len(set(names)) < len(names):
        return [
            Condition(
                state="unknown",
                text="a unique id for each instance: several share one client id, so take the id from the host or pod "
                "name",
            )
        ]
    return [Condition(state="met", text="each instance has a unique client id that survived its restarts")]
