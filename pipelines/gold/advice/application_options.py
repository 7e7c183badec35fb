"""Changes of an application instead of its protocol: how it shuts down, how it polls, and an instance that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from pipelines.gold.advice.blocked_callbacks import BlockedCallback
from pipelines.gold.advice.config_snippets import Condition, closing, longer_polls
from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.advice.options import Group, Option, option, spared
from pipelines.gold.advice.prediction import Prediction
from pipelines.gold.churn import Churn, Outage
from schemas.states import AdviceAction, GroupEventKind
from schemas.written import count

BROKEN = (GroupEventKind.SESSION_EXPIRED, GroupEventKind.POLL_TIMEOUT)
GUILTY = 0.6
"""Share of all failures from which one instance is suspected."""

GUILTY_TIMES = 3

UNCLOSED = 0.8
"""Share of a deploy's departures that must be expired sessions: nearly all, because a single process may be killed."""

UNCLOSED_TIMES = 2

EXIT = (
    "its last log lines before each failure, the exit code of its process (137: killed, often for its memory; 143: "
    "stopped; 1: an exception) and the memory, processor and network of its host"
)


def application_options(group: Group) -> list[Option]:
    """Return every change of the application that the churn gives reason to evaluate."""
    return list(chain.from_iterable(each(group) for each in (_closing, _polls, _guilty)))


def _closing(group: Group) -> Iterator[Option]:
    """Yield the option to leave on shutdown, if the departures of deploys are nearly all expired sessions.

    A static member does not leave when it is closed (KIP-345).
    """
    deployed = {
        (i.number, one.gone_at)
        for i in group.churn.instances
        for one in i.memberships
        if (one.member_id, one.gone_at) in group.deployed
    }
    expired = [
        o
        for o in group.churn.outages
        if o.departure_kind == GroupEventKind.SESSION_EXPIRED and (o.instance, o.gone_at) in deployed
    ]
    if group.now.is_static or len(expired) < max(UNCLOSED_TIMES, UNCLOSED * len(deployed)):
        return
    closed = tuple(
        replace(o, departure_kind=GroupEventKind.LEFT, gone_at=o.stopped_at) if o in expired else o
        for o in group.churn.outages
    )
    detected = sum(o.gone_at - o.stopped_at for o in expired) // len(expired)
    why = (
        f"{len(expired)} of {count(len(deployed), 'departure')} in deploys ended with an expired session instead of a "
        f"leave, {detected:,} ms after the process had stopped (average), because the processes did not close their "
        "consumers. A consumer that is closed leaves at once, and the others take over without waiting."
    )
    action = AdviceAction.CLOSE_ON_SHUTDOWN
    prediction = group.predict(group.now, replace(group.churn, outages=closed))
    yield option(group, action, prediction, closing(group.latencies.libraries), why)


def _polls(group: Group) -> Iterator[Option]:
    slow = [o for o in group.churn.outages if o.departure_kind == GroupEventKind.POLL_TIMEOUT and o.back_at is not None]
    if group.blocked is not None:
        yield _longer_block(group, group.blocked)
        return
    if not slow:
        return
    longest = max(o.back_at - o.stopped_at for o in slow if o.back_at is not None)
    # The member did not poll for the whole interval, although its last commits may make its absence look shorter.
    limit = max(group.churn.instances[o.instance].memberships[-1].rebalance_timeout_ms for o in slow)
    wanted = -(-max(longest, limit) * 3 // 2 // 60_000) * 60_000
    why = (
        f"{len(slow)} times an instance did not poll within max.poll.interval.ms and was removed; the longest absence "
        f"was {longest:,} ms. With a longer interval, only its own partitions wait until it polls again."
    )
    action = AdviceAction.RAISE_MAX_POLL_INTERVAL
    yield option(group, action, spared(group, slow), longer_polls(wanted, group.latencies.libraries), why)


def _longer_block(group: Group, blocked: BlockedCallback) -> Option:
    """Return why the poll interval must not be raised: the callback would only block for longer."""
    wanted = blocked.poll_interval_ms * 3 // 2
    why = (
        f"{blocked.times} times everyone waited for {blocked.client_id}, up to {blocked.longest_ms:,} ms, just less "
        f"than its max.poll.interval.ms of {blocked.poll_interval_ms:,} ms. So its rebalance callback waits for as "
        f"long as the interval allows, and with {wanted:,} ms everyone would wait for longer. Do not raise the "
        "interval; give the callback a timeout of its own of a few seconds."
    )
    condition = Condition(state="missing", text="a rebalance callback whose wait does not depend on the poll interval")
    found = option(group, AdviceAction.RAISE_MAX_POLL_INTERVAL, _blocked_for(group, blocked, wanted), {}, why)
    return replace(found, preconditions=(condition, *found.preconditions))


def _blocked_for(group: Group, blocked: BlockedCallback, wanted: int) -> Prediction:
    """Return the prediction if the waits grow with the poll interval to `wanted` milliseconds."""

    def longer(ms: int) -> int:
        return ms * wanted // blocked.poll_interval_ms if blocked.is_wait(ms) else ms

    reactions = tuple(
        replace(r, noticed_ms=tuple(longer(ms) for ms in r.noticed_ms), rest_ms=longer(r.rest_ms))
        for r in group.latencies.reactions
    )
    latencies: Latencies = replace(group.latencies, reactions=reactions)
    return group.predict(group.now, _with_interval(group.churn, wanted), latencies=latencies)


def _with_interval(found: Churn, poll_interval_ms: int) -> Churn:
    instances = tuple(
        replace(i, memberships=[*i.memberships[:-1], replace(i.memberships[-1], rebalance_timeout_ms=poll_interval_ms)])
        for i in found.instances
    )
    return replace(found, instances=instances)


def _guilty(group: Group) -> Iterator[Option]:
    failed = [o for o in group.churn.outages if o.departure_kind in BROKEN]
    counts = Counter(o.instance for o in failed)
    for instance, times in counts.most_common(1):
        if times >= GUILTY_TIMES and times >= GUILTY * len(failed) and len(group.churn.instances) > 1:
            others = tuple(o for o in group.churn.outages if o.instance != instance or o.departure_kind not in BROKEN)
            prediction = group.predict(group.now, replace(group.churn, outages=others))
            why = _failures(group.churn, [o for o in failed if o.instance == instance], len(failed))
            yield option(group, AdviceAction.FIX_MEMBER, prediction, {}, why)


def _failures(found: Churn, mine: list[Outage], failures: int) -> str:
    instance = found.instances[mine[0].instance]
    host = instance.memberships[-1].client_host
    return (
        f"{instance.name} caused {len(mine)} of {failures} failures. The prediction is the loss without them. Look at "
        f"{EXIT}{f' {host}' if host else ''}."
    )
