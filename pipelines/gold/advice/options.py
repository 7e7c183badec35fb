"""Which changes a group's churn gives reason to try, and what each would cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from pipelines.gold.advice.config_snippets import Condition, faster_heartbeats, longer_polls, preconditions, settings
from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.advice.prediction import Prediction, predict, rough
from pipelines.gold.advice.replay import Policy
from pipelines.gold.churn import Churn, Outage
from schemas.states import AdviceAction, GroupEventKind

SESSIONS_MS = (6_000, 10_000, 20_000, 30_000, 45_000, 60_000, 120_000, 300_000)
"""Session timeouts to choose from; below 6 s brokers refuse by default (group.min.session.timeout.ms)."""

HEARTBEAT_MS = 1_000
"""More often would only burden coordinators: the join of the slowest member takes as long by then."""

SAME = 1.05
"""Losses that differ by less are the same."""

HEADROOM = 1.5
"""A session timeout should outlast the longest restart by this much, where that costs nothing."""

REFUSED = (
    "A static instance that stops politely keeps what it has; one that died is refused (UNRELEASED_INSTANCE_ID) until "
    "its old session has ended."
)

BROKEN = (GroupEventKind.SESSION_EXPIRED, GroupEventKind.POLL_TIMEOUT)
GUILTY = 0.6
"""Share of the failures that makes one instance the one to look at."""

GUILTY_TIMES = 3
PAUSE_MS = 45_000
"""Who is back within Kafka's own default session timeout may only have paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One action, what it would cost and what it takes. `why` is a sentence of its own."""

    action: AdviceAction
    prediction: Prediction
    settings: Mapping[str, str]
    preconditions: tuple[Condition, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What the options are made from; `now` is the policy in force. Kafka Streams brings an assignor of its own."""

    churn: Churn
    latencies: Latencies
    now: Policy
    seed: str
    is_streams: bool = False

    def predict(self, policy: Policy, churn: Churn | None = None) -> Prediction:
        return predict(churn or self.churn, self.latencies, policy, self.seed)

    @property
    def session_ms(self) -> int:
        return max((i.memberships[-1].session_timeout_ms for i in self.churn.instances), default=0)


def options(group: Group) -> list[Option]:
    """Every action that the churn gives reason to evaluate."""
    found = (_static, _protocols, _sessions, _heartbeats, _polls, _guilty)
    return list(chain.from_iterable(each(group) for each in found))


def _option(group: Group, action: AdviceAction, prediction: Prediction, paste: Mapping[str, str], why: str) -> Option:
    conditions = preconditions(action, group.churn, group.latencies)
    return Option(action=action, prediction=prediction, settings=paste, preconditions=tuple(conditions), why=why)


def _static(group: Group) -> Iterator[Option]:
    if group.now.is_static or group.now.is_consumer_protocol:
        return
    policies = {s: replace(group.now, is_static=True, session_timeout_ms=s) for s in _candidates(group)}
    tried = {s: rough(group.churn, group.latencies, policy, group.seed) for s, policy in policies.items()}
    absences = [o.back_at - o.stopped_at for o in group.churn.outages if o.back_at is not None]
    least = min(tried.values())
    good = [s for s, lost in tried.items() if lost <= least * SAME + 0.1]
    lasting = [s for s in good if s >= HEADROOM * max(absences, default=0)]
    best = min(lasting or good, key=lambda s: abs(s - group.session_ms))
    within = sum(a <= best for a in absences)
    why = (
        f"With a session timeout of {best:,} ms {within} of {len(absences)} absences would end before anybody else "
        "notices; what the absent instance had stands still meanwhile, and nothing else does."
    )
    action = AdviceAction.STATIC_MEMBERSHIP
    yield _option(group, action, group.predict(policies[best]), settings(action, best), why)


def _candidates(group: Group) -> list[int]:
    return sorted({*SESSIONS_MS, group.session_ms} - {0})


def _protocols(group: Group) -> Iterator[Option]:
    if group.is_streams:
        return
    if group.now.is_consumer_protocol:
        if not group.now.is_static:
            policy, action = replace(group.now, is_static=True), AdviceAction.CONSUMER_PROTOCOL_STATIC
            why = f"{_why_consumer(group)} {REFUSED}"
            yield _option(group, action, group.predict(policy), settings(action), why)
        return
    if not group.now.is_cooperative:
        action = AdviceAction.COOPERATIVE_ASSIGNOR
        policy = replace(group.now, is_cooperative=True)
        why = "What does not move goes on, but what moves waits for a second rebalance."
        yield _option(group, action, group.predict(policy), settings(action), why)
    for action, is_static in (
        (AdviceAction.CONSUMER_PROTOCOL, False),
        (AdviceAction.CONSUMER_PROTOCOL_STATIC, True),
    ):
        policy = Policy(is_consumer_protocol=True, is_static=is_static)
        why = _why_consumer(group) + (f" {REFUSED}" if is_static else "")
        yield _option(group, action, group.predict(policy), settings(action), why)


def _why_consumer(group: Group) -> str:
    broker = group.latencies.broker
    heartbeat = (
        f"{broker.heartbeat_ms:,} ms, as the broker has it"
        if broker.heartbeat_ms
        else ("5,000 ms, the default, since the broker's setting was not observed")
    )
    session = f"{broker.session_ms:,} ms" if broker.session_ms else "45,000 ms, the default"
    return f"Only what moves stops, each time up to one heartbeat ({heartbeat}); a death is noticed after {session}."


def _sessions(group: Group) -> Iterator[Option]:
    expired = [o for o in group.churn.outages if o.how == GroupEventKind.SESSION_EXPIRED]
    if not expired or group.now.is_consumer_protocol:
        return
    lower = [s for s in SESSIONS_MS if s < group.session_ms]
    if lower and len(expired) > 1:
        tried = {s: group.predict(replace(group.now, session_timeout_ms=s)) for s in lower[:2]}
        best = min(tried, key=lambda s: tried[s].lost)
        why = f"{len(expired)} deaths were noticed after {group.session_ms:,} ms; {best:,} ms notices them sooner."
        action = AdviceAction.LOWER_SESSION_TIMEOUT
        yield _option(group, action, tried[best], settings(action, best), why)
    paused = [o for o in expired if o.back_at is not None and o.back_at - o.stopped_at < PAUSE_MS]
    if len(paused) > 1 and group.session_ms < PAUSE_MS:
        action = AdviceAction.RAISE_SESSION_TIMEOUT
        why = (
            f"{len(paused)} instances were expelled and back within {PAUSE_MS:,} ms. If they paused and were not "
            "restarted, a longer session timeout spares the group both rebalances."
        )
        yield _option(group, action, _spared(group, paused), settings(action, PAUSE_MS), why)


def _heartbeats(group: Group) -> Iterator[Option]:
    usual = group.latencies.usual_heartbeat_ms
    if group.now.is_consumer_protocol or usual <= HEARTBEAT_MS:
        return
    policy, action = replace(group.now, heartbeat_interval_ms=HEARTBEAT_MS), AdviceAction.LOWER_HEARTBEAT_INTERVAL
    why = (
        f"Members learn of a rebalance with a heartbeat; theirs seem to come every {usual:,} ms. With "
        f"{HEARTBEAT_MS:,} ms the others wait less, and the coordinator gets {usual / HEARTBEAT_MS:.0f} times as many."
    )
    yield _option(group, action, group.predict(policy), faster_heartbeats(HEARTBEAT_MS), why)


def _polls(group: Group) -> Iterator[Option]:
    slow = [o for o in group.churn.outages if o.how == GroupEventKind.POLL_TIMEOUT and o.back_at is not None]
    if not slow:
        return
    longest = max(o.back_at - o.stopped_at for o in slow if o.back_at is not None)
    wanted = -(-longest * 3 // 2 // 60_000) * 60_000
    why = (
        f"{len(slow)} times an instance did not poll for longer than max.poll.interval.ms and was expelled; the "
        f"longest was away for {longest:,} ms. What it had then stands still until its poll is done."
    )
    action = AdviceAction.RAISE_MAX_POLL_INTERVAL
    yield _option(group, action, _spared(group, slow), longer_polls(wanted), why)


def _guilty(group: Group) -> Iterator[Option]:
    failed = [o for o in group.churn.outages if o.how in BROKEN]
    counts = Counter(o.instance for o in failed)
    for instance, count in counts.most_common(1):
        if count >= GUILTY_TIMES and count >= GUILTY * len(failed) and len(group.churn.instances) > 1:
            others = tuple(o for o in group.churn.outages if o.instance != instance or o.how not in BROKEN)
            name = group.churn.instances[instance].name
            why = f"{name} failed {count} of {len(failed)} times; without its failures this is what is left."
            prediction = group.predict(group.now, replace(group.churn, outages=others))
            yield _option(group, AdviceAction.FIX_MEMBER, prediction, {}, why)


def _spared(group: Group, spared: list[Outage]) -> Prediction:
    """These outages only hold up what the instance has: nobody is expelled and nothing moves."""
    rest = replace(group.churn, outages=tuple(o for o in group.churn.outages if o not in spared))
    found = group.predict(group.now, rest)
    held = sum((o.back_at - o.stopped_at) * o.held for o in spared if o.back_at is not None) / 1000
    return replace(found, lost=found.lost + held, low=found.low + held, high=found.high + held)
