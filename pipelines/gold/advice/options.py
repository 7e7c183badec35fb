"""The changes of client settings that a group's churn gives reason to evaluate, and the predicted cost of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from pipelines.gold.advice.blocked_callbacks import BlockedCallback
from pipelines.gold.advice.config_snippets import Condition, faster_heartbeats, preconditions, settings
from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.advice.prediction import Prediction, Saving, predict, rough, saving
from pipelines.gold.advice.replay import Policy
from pipelines.gold.churn import Churn, Outage
from schemas.states import AdviceAction, GroupEventKind
from schemas.written import count

SESSIONS_MS = (6_000, 10_000, 20_000, 30_000, 45_000, 60_000, 120_000, 300_000)
"""Session timeouts to choose from. Brokers refuse less than 6 s by default (group.min.session.timeout.ms)."""

HEARTBEAT_MS = 1_000
"""Shortest heartbeat interval to recommend. A shorter one only adds load to coordinators, because the join of the
slowest member takes about as long."""

SAME = 1.05
"""Losses that differ by less than this factor count as equal."""

HEADROOM = 1.5
"""Factor by which a session timeout should exceed the longest restart, if that costs nothing."""

REFUSED = (
    "A static instance that shuts down cleanly keeps its partitions. One that crashed is refused "
    "(UNRELEASED_INSTANCE_ID) until its old session has expired."
)

PAUSE_MS = 45_000
"""An instance that returns within Kafka's default session timeout may only have paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One action with its predicted cost, its saving, settings and preconditions. `why` is a complete sentence."""

    action: AdviceAction
    prediction: Prediction
    saving: Saving
    settings: Mapping[str, str]
    preconditions: tuple[Condition, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The input of the options. `now` is the policy in force, and `as_is` the replay of the group's churn and of its
    repetitions (`repeated`) under it. Kafka Streams (`is_streams`) uses its own assignor. `blocked` is a member whose
    callback waits for nearly its poll interval. `deployed` has the member id and time of each departure that a deploy
    caused.
    """

    churn: Churn
    latencies: Latencies
    now: Policy
    as_is: Prediction
    repeated: tuple[Churn, ...]
    seed: str
    is_streams: bool = False
    blocked: BlockedCallback | None = None
    deployed: frozenset[tuple[str, int]] = frozenset()

    def predict(
        self,
        policy: Policy,
        churn: Churn | None = None,
        *,
        latencies: Latencies | None = None,
        added: float = 0.0,
    ) -> Prediction:
        """Return the predicted cost under a policy, with as many replays as `as_is` has.

        The churn and the latencies are the group's, unless others are given. Every replay loses `added`
        resource-seconds more.
        """
        runs = len(self.as_is.exact)
        measured, repeated = latencies or self.latencies, () if churn or latencies else self.repeated
        return predict(churn or self.churn, measured, policy, self.seed, runs=runs, added=added, repeated=repeated)

    @property
    def session_ms(self) -> int:
        """The longest session timeout of the instances, in milliseconds."""
        return max((i.memberships[-1].session_timeout_ms for i in self.churn.instances), default=0)


def options(group: Group) -> list[Option]:
    """Return every change of client settings that the churn gives reason to evaluate."""
    found = (_static, _protocols, _sessions, _heartbeats)
    return list(chain.from_iterable(each(group) for each in found))


def option(group: Group, action: AdviceAction, prediction: Prediction, paste: Mapping[str, str], why: str) -> Option:
    """Return the option of an action, with its saving and its preconditions."""
    conditions = preconditions(action, group.churn, group.latencies)
    return Option(
        action=action,
        prediction=prediction,
        saving=saving(group.as_is, prediction),
        settings=paste,
        preconditions=tuple(conditions),
        why=why,
    )


def _static(group: Group) -> Iterator[Option]:
    if group.now.is_static or group.now.is_consumer_protocol:
        return
    policies = {s: replace(group.now, is_static=True, session_timeout_ms=s) for s in _candidates(group)}
    predictions = {s: rough(group.churn, group.latencies, policy, group.seed) for s, policy in policies.items()}
    absences = [o.back_at - o.stopped_at for o in group.churn.outages if o.back_at is not None]
    least = min(predictions.values())
    good = [s for s, lost in predictions.items() if lost <= least * SAME + 0.1]
    long_enough = [s for s in good if s >= HEADROOM * max(absences, default=0)]
    best = min(long_enough or good, key=lambda s: abs(s - group.session_ms))
    within = sum(a <= best for a in absences)
    why = (
        f"With a session timeout of {best:,} ms, {within} of {len(absences)} absences would end before the other "
        "members notice. During an absence, only the resources of the absent instance stop."
    )
    action = AdviceAction.STATIC_MEMBERSHIP
    yield option(group, action, group.predict(policies[best]), settings(action, group.latencies, best), why)


def _candidates(group: Group) -> list[int]:
    return sorted({*SESSIONS_MS, group.session_ms} - {0})


def _protocols(group: Group) -> Iterator[Option]:
    if group.is_streams:
        return
    if group.now.is_consumer_protocol:
        if not group.now.is_static:
            policy, action = replace(group.now, is_static=True), AdviceAction.CONSUMER_PROTOCOL_STATIC
            why = f"{_why_consumer(group)} {REFUSED}"
            yield option(group, action, group.predict(policy), settings(action, group.latencies), why)
        return
    if not group.now.is_cooperative:
        action = AdviceAction.COOPERATIVE_ASSIGNOR
        policy = replace(group.now, is_cooperative=True)
        why = "Partitions that do not move continue, but partitions that move wait for a second rebalance."
        yield option(group, action, group.predict(policy), settings(action, group.latencies), why)
    for action, is_static in (
        (AdviceAction.CONSUMER_PROTOCOL, False),
        (AdviceAction.CONSUMER_PROTOCOL_STATIC, True),
    ):
        policy = Policy(is_consumer_protocol=True, is_static=is_static)
        why = _why_consumer(group) + (f" {REFUSED}" if is_static else "")
        yield option(group, action, group.predict(policy), settings(action, group.latencies), why)


def _why_consumer(group: Group) -> str:
    broker = group.latencies.broker
    heartbeat = (
        f"{broker.heartbeat_ms:,} ms, the broker's setting"
        if broker.heartbeat_ms
        else "5,000 ms, the default, because the broker's setting was not observed"
    )
    session = f"{broker.session_ms:,} ms" if broker.session_ms else "45,000 ms, the default"
    return (
        f"Only partitions that move stop, each time for up to one heartbeat interval ({heartbeat}). A failure is "
        f"noticed after {session}."
    )


def _sessions(group: Group) -> Iterator[Option]:
    expired = [o for o in group.churn.outages if o.departure_kind == GroupEventKind.SESSION_EXPIRED]
    if not expired or group.now.is_consumer_protocol:
        return
    lower = [s for s in SESSIONS_MS if s < group.session_ms]
    if lower and len(expired) > 1:
        predictions = {s: group.predict(replace(group.now, session_timeout_ms=s)) for s in lower[:2]}
        best = min(predictions, key=lambda s: predictions[s].lost)
        why = (
            f"{len(expired)} failures were noticed after {group.session_ms:,} ms; {best:,} ms would notice them sooner."
        )
        action = AdviceAction.LOWER_SESSION_TIMEOUT
        yield option(group, action, predictions[best], settings(action, group.latencies, best), why)
    paused = [o for o in expired if o.back_at is not None and o.back_at - o.stopped_at < PAUSE_MS]
    if len(paused) > 1 and group.session_ms < PAUSE_MS:
        action, policy = AdviceAction.RAISE_SESSION_TIMEOUT, replace(group.now, session_timeout_ms=PAUSE_MS)
        why = (
            f"{len(paused)} times an instance was removed and was back within {PAUSE_MS:,} ms. If it only paused, a "
            "longer session timeout avoids both rebalances."
        )
        if others := len(expired) - len(paused):
            why += f" {count(others, 'other failure')} would be noticed later, which the prediction includes."
        yield option(group, action, spared(group, paused, policy), settings(action, group.latencies, PAUSE_MS), why)


def _heartbeats(group: Group) -> Iterator[Option]:
    usual = group.latencies.usual_heartbeat_ms
    if group.now.is_consumer_protocol or usual <= HEARTBEAT_MS:
        return
    policy, action = replace(group.now, heartbeat_interval_ms=HEARTBEAT_MS), AdviceAction.LOWER_HEARTBEAT_INTERVAL
    why = (
        f"Members learn of a rebalance with their next heartbeat; heartbeats seem to come every {usual:,} ms. With "
        f"{HEARTBEAT_MS:,} ms, the other members wait less, and the coordinator gets {usual / HEARTBEAT_MS:.0f} times "
        "as many heartbeats."
    )
    yield option(group, action, group.predict(policy), faster_heartbeats(HEARTBEAT_MS, group.latencies.libraries), why)


def spared(group: Group, outages: list[Outage], policy: Policy | None = None) -> Prediction:
    """Return the prediction if these outages stop only the instance's own resources: no removal and no rebalance.

    The policy is the one in force, unless another is given.
    """
    rest = replace(group.churn, outages=tuple(o for o in group.churn.outages if o not in outages))
    own = sum((o.back_at - o.stopped_at) * o.owned for o in outages if o.back_at is not None) / 1000
    return group.predict(policy or group.now, rest, added=own)
