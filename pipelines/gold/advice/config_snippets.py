"""Configuration to paste for each action, and the preconditions of each action.

A snippet has a target: a client library, or a language or framework on top of one.
Sources: KIP-345 (static membership; Connect has none), KIP-429 (cooperative), KIP-848 (consumer protocol), and
`schemas.client_settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pipelines.gold.advice.latencies import CONSUMER_HEARTBEAT_MS, CONSUMER_SESSION_MS, LIBRDKAFKA, Latencies
from pipelines.gold.churn import Churn
from schemas.client_libraries import FACTS, LibraryFacts
from schemas.client_settings import SPELLINGS, Setting, Spelling
from schemas.states import AdviceAction, ClientLibrary

POD_NAME = """\
# Use a StatefulSet: its pods keep their names. Pods of a Deployment do not, so each restart would be a new instance.
env:
  - name: GROUP_INSTANCE_ID
    valueFrom:
      fieldRef:
        fieldPath: metadata.name"""

SHUTDOWN = """\
# The process must get SIGTERM (in a shell script: exec), and time to close before SIGKILL.
terminationGracePeriodSeconds: 60"""

BROKER = """\
# brokers 4.0 or newer; they set heartbeats and sessions
group.consumer.heartbeat.interval.ms={heartbeat}
group.consumer.session.timeout.ms={session}"""


def settings(action: AdviceAction, latencies: Latencies, session_timeout_ms: int | None = None) -> dict[str, str]:
    """Return snippets by target, for the group's libraries; for all if they are not known.

    They have the values with which the action was predicted. `session_timeout_ms` is set if the action includes a
    timeout.
    """
    broker = BROKER.format(
        heartbeat=latencies.broker.heartbeat_ms or CONSUMER_HEARTBEAT_MS,
        session=latencies.broker.session_ms or CONSUMER_SESSION_MS,
    )
    wanted: dict[Setting, int | None] = {}
    match action:
        case AdviceAction.STATIC_MEMBERSHIP:
            wanted = {"static": None}
        case AdviceAction.COOPERATIVE_ASSIGNOR:
            wanted = {"cooperative": None}
        case AdviceAction.CONSUMER_PROTOCOL:
            wanted = {"consumer_protocol": None}
        case AdviceAction.CONSUMER_PROTOCOL_STATIC:
            wanted = {"consumer_protocol": None, "static": None}
        case AdviceAction.RAISE_SESSION_TIMEOUT | AdviceAction.LOWER_SESSION_TIMEOUT if session_timeout_ms is not None:
            wanted = {"heartbeat": min(3_000, session_timeout_ms // 3)}
    if session_timeout_ms is not None:
        wanted = {**wanted, "session": session_timeout_ms}
    found = _snippets(wanted, latencies.libraries) if wanted else {}
    if not found:
        return {}
    pods = {"kubernetes": POD_NAME} if "static" in wanted else {}
    return found | pods | ({"broker": broker} if "consumer_protocol" in wanted else {})


def faster_heartbeats(heartbeat_interval_ms: int, libraries: frozenset[ClientLibrary]) -> dict[str, str]:
    """Return snippets for a shorter heartbeat interval."""
    return _snippets({"heartbeat": heartbeat_interval_ms}, libraries)


def longer_polls(max_poll_interval_ms: int, libraries: frozenset[ClientLibrary]) -> dict[str, str]:
    """Return snippets for a longer poll interval."""
    found = _snippets({"poll_interval": max_poll_interval_ms}, libraries)
    return {
        target: text + "\n# or fewer records per poll:\nmax.poll.records=100" if target == "java" else text
        for target, text in found.items()
    }


def closing(libraries: frozenset[ClientLibrary]) -> dict[str, str]:
    """Return how a program closes its consumer on shutdown, by target, for the group's libraries or for all."""
    found = {
        target: spelling.close
        for target, (library, spelling) in SPELLINGS.items()
        if spelling.close and (not libraries or library in libraries)
    }
    return found | {"kubernetes": SHUTDOWN} if found else {}


def connect_delay(delay_ms: int) -> dict[str, str]:
    """Return the snippet for another rebalance delay of Kafka Connect."""
    return {"connect": f"scheduled.rebalance.max.delay.ms={delay_ms}"}


def _snippets(wanted: Mapping[Setting, int | None], libraries: frozenset[ClientLibrary]) -> dict[str, str]:
    """Return the snippets of the targets that have all wanted settings."""
    return {
        target: _spelled(spelling, wanted)
        for target, (library, spelling) in SPELLINGS.items()
        if (not libraries or library in libraries) and wanted.keys() <= spelling.parts.keys()
    }


def _spelled(spelling: Spelling, wanted: Mapping[Setting, int | None]) -> str:
    parts = [
        text.format(ms=wanted[setting], seconds=f"{(wanted[setting] or 0) / 1000:g}")
        for setting, text in spelling.parts.items()
        if setting in wanted
    ]
    notes = [note for setting in wanted if (note := spelling.notes.get(setting))]
    return "\n".join([*notes, spelling.whole.format(parts=spelling.separator.join(parts))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A precondition. `state` is met, missing or unknown."""

    state: str
    text: str

    def __str__(self) -> str:
        return f"{self.state}: {self.text}"


NEEDS: dict[AdviceAction, tuple[str, Callable[[LibraryFacts], str | None]]] = {
    AdviceAction.STATIC_MEMBERSHIP: ("static membership", lambda facts: facts.static_membership),
    AdviceAction.COOPERATIVE_ASSIGNOR: ("cooperative assignment", lambda facts: facts.cooperative),
    AdviceAction.CONSUMER_PROTOCOL: ("the consumer protocol", lambda facts: facts.consumer_protocol),
    AdviceAction.CONSUMER_PROTOCOL_STATIC: ("the consumer protocol", lambda facts: facts.consumer_protocol),
    AdviceAction.CLOSE_ON_SHUTDOWN: (
        "a leave when it is closed",
        lambda facts: "any" if facts.leaves_on_close else None,
    ),
    AdviceAction.RAISE_MAX_POLL_INTERVAL: (
        "a poll timeout",
        lambda facts: "any" if facts.watchdog == "leave" else None,
    ),
}
"""What an action needs of a client library: its name, and the first version that offers it."""


def preconditions(action: AdviceAction, churn: Churn, latencies: Latencies) -> list[Condition]:
    """Return the preconditions of an action. Records show for some of them whether they are met."""
    out = []
    if action in (AdviceAction.STATIC_MEMBERSHIP, AdviceAction.CONSUMER_PROTOCOL_STATIC):
        out += _nameable(churn)
        text = "members do not explicitly remove themselves from the group when they stop"
        out.append(Condition(state="unknown", text=text))
    if action == AdviceAction.COOPERATIVE_ASSIGNOR:
        stops = latencies.libraries & {*LIBRDKAFKA, ClientLibrary.KAFKA_PYTHON}
        text = (
            f"the whole group can be stopped once, because {min(stops)} cannot mix eager and cooperative members"
            if stops
            else "every member can be restarted twice, one by one"
        )
        out.append(Condition(state="unknown", text=text))
    if action == AdviceAction.CLOSE_ON_SHUTDOWN:
        text = "the processes were stopped in deploys, not killed (records show only that their sessions expired)"
        out.append(Condition(state="unknown", text=text))
    if action == AdviceAction.LOWER_HEARTBEAT_INTERVAL:
        text = "heartbeat.interval.ms has the observed value (inferred: no record contains it)"
        out.append(Condition(state="unknown", text=text))
    if action in (AdviceAction.CONSUMER_PROTOCOL, AdviceAction.CONSUMER_PROTOCOL_STATIC):
        seen = latencies.broker.heartbeat_ms is not None
        text = "brokers are 4.0 or newer, with the consumer protocol enabled"
        out.append(Condition(state="met" if seen else "unknown", text=text))
        out.append(Condition(state="unknown", text="no member uses a custom assignor"))
    return [*_offered(action, latencies.libraries), *out]


def _offered(action: AdviceAction, libraries: frozenset[ClientLibrary]) -> Iterator[Condition]:
    """Yield the condition that each client library of the group offers what the action needs.

    For unknown libraries, the condition lists the libraries that offer it.
    """
    if action not in NEEDS:
        return
    name, version_of = NEEDS[action]
    lacking = sorted(each for each in libraries if each in FACTS and version_of(FACTS[each]) is None)
    if lacking:
        lack = "does not offer" if len(lacking) == 1 else "do not offer"
        yield Condition(state="missing", text=f"{name}, which {' and '.join(lacking)} {lack}")
        return
    known = sorted(libraries & FACTS.keys()) or sorted(FACTS)
    versions = [f"{each} {_version(found)}" for each in known if (found := version_of(FACTS[each])) is not None]
    text = f"every member uses {' or '.join(versions)}" if libraries else f"a client with {name}: {', '.join(versions)}"
    yield Condition(state="unknown", text=text)


def _version(first: str) -> str:
    return "(any version)" if first == "any" else f"{first} or newer"


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
