"""The figures in words: the text summary next to each figure, also for screen readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dashboards.lake.lake import Row
from dashboards.queries.store import Rebalance
from dashboards.text import ABSENT, between, clock, duration, member_label, span, visible
from dashboards.views.theme import STYLES, style_of
from dashboards.views.timelines.segments import Segment
from dashboards.zone import zone
from schemas import loss_interval
from schemas.folded_rows import count_of
from schemas.states import (
    AdviceAction,
    DiagnosisCause,
    Evidence,
    GroupProtocol,
    GroupType,
    NotCosted,
    StallCause,
    Trigger,
)
from schemas.written import count

TRIGGERS = {
    Trigger.FIRST_MEMBER: "{} was the first to join",
    Trigger.MEMBER_JOINED: "{} joined",
    Trigger.MEMBER_LEFT: "{} left",
    Trigger.SESSION_EXPIRED: "{} is gone (session expired)",
    Trigger.POLL_TIMEOUT: "{} did not poll in time (poll timeout)",
    Trigger.REJOIN_TIMEOUT: "{} did not rejoin in time",
    Trigger.SYNC_TIMEOUT: "{} did not ask for its assignment in time",
    Trigger.LEADER_REJOINED: "the leader {} rejoined",
    Trigger.SUBSCRIPTION_CHANGED: "{} changed its subscription",
    Trigger.METADATA_CHANGED: "the metadata changed (topics, partitions or connectors)",
    Trigger.COOPERATIVE_FOLLOWUP: "follow-up: assigns what was revoked before",
    Trigger.STATIC_MEMBER_CHANGED: "the static member {} came back changed",
    Trigger.ASSIGNMENT_FAILED: "the assignment could not be stored",
    Trigger.CONNECT_DELAY_EXPIRED: "the delay for a lost worker was over",
    Trigger.PROBING: "a probing rebalance of Kafka Streams",
    Trigger.UPGRADE: "the group was upgraded",
    Trigger.DOWNGRADE: "the group was downgraded",
    Trigger.ENFORCED: "{} requested a rebalance",
    Trigger.UNKNOWN: "why is not known",
}

VERBS = {
    Trigger.FIRST_MEMBER: "first member",
    Trigger.MEMBER_JOINED: "joined",
    Trigger.MEMBER_LEFT: "left",
    Trigger.SESSION_EXPIRED: "session expired",
    Trigger.POLL_TIMEOUT: "poll timeout",
    Trigger.REJOIN_TIMEOUT: "did not rejoin in time",
    Trigger.SYNC_TIMEOUT: "did not ask for its assignment in time",
    Trigger.LEADER_REJOINED: "leader rejoined",
    Trigger.SUBSCRIPTION_CHANGED: "changed its subscription",
    Trigger.STATIC_MEMBER_CHANGED: "static member came back changed",
    Trigger.ENFORCED: "requested a rebalance",
}
"""Triggers that a member causes, in the words of a table's column: a long client id would push the verb out of it."""

CAUSES = {
    DiagnosisCause.POLL_TIMEOUT: "polls that came too late (poll timeout)",
    DiagnosisCause.SESSION_EXPIRY: "members that went silent (session timeout)",
    DiagnosisCause.DEPLOY: "deploys and restarts",
    DiagnosisCause.SCALING: "members added or taken away",
    DiagnosisCause.POD_FAILURE: "pods that were killed, evicted or lost with their node",
    DiagnosisCause.CRASH_LOOP: "members that crash again and again",
    DiagnosisCause.SLOW_JOINER: "a member that rejoins slowly",
    DiagnosisCause.LEADER_FLAPPING: "a leader that rejoins again and again",
    DiagnosisCause.REJOIN_LOOP: "a loop of rebalances that change nothing",
    DiagnosisCause.FOLLOW_UPS: "follow-ups of the cooperative protocol",
    DiagnosisCause.COORDINATOR: "trouble at the coordinator",
    DiagnosisCause.TOPIC_CHANGES: "topics or partitions that changed",
    DiagnosisCause.CONNECT_DELAY: "Connect's delay for lost workers",
    DiagnosisCause.PROBING: "probing rebalances of Kafka Streams",
    DiagnosisCause.MIXED_PROTOCOLS: "members with different assignors or protocols",
    DiagnosisCause.UNKNOWN: "not known",
}
"""Suspected causes, as nouns."""

ACTIONS = {
    AdviceAction.NONE: "leave it as it is",
    AdviceAction.CONSUMER_PROTOCOL: "consumer protocol (KIP-848)",
    AdviceAction.CONSUMER_PROTOCOL_STATIC: "consumer protocol (KIP-848), static",
}
"""Names of actions whose value does not say what they are."""

UNITS = {GroupType.CONSUMER: "partition", GroupType.STREAMS: "partition", GroupType.CONNECT: "task"}


def unit(group_type: str | None) -> str:
    """Return the noun for the resources of a group of this type."""
    return next((word for kind, word in UNITS.items() if kind == group_type), "resource")


def term(generation: Row) -> str:
    """Return the name that the group's protocol uses for a row of `generations`."""
    return "generation" if generation["group_protocol"] == GroupProtocol.CLASSIC else "epoch"


def names(rows: Iterable[Row]) -> dict[str, str]:
    """Return short names by member id, for every member in rows of members or events."""
    return {
        r["member_id"]: visible(member_label(r["member_id"], r["group_instance_id"], r["client_id"]), 60)
        for r in rows
        if r["member_id"]
    }


def resources_moved(generation: Row) -> str:
    """Return `4 of 12`; a dash if there is no assignment."""
    if generation["resources_moved"] is None:
        return ABSENT
    return f"{generation['resources_moved']} of {generation['resources_assigned']}"


def trigger(generation: Row, known: dict[str, str]) -> str:
    """Return why the rebalance began, in words; with `probably` if that is inferred."""
    member = generation["trigger_member_id"]
    name = known.get(member, visible(member_label(member), 60)) if member else "a member"
    kind = generation["trigger"]
    text = TRIGGERS[Trigger(kind)].replace("{}", name) if kind in TRIGGERS else visible(kind)
    probably = generation["trigger_evidence"] == Evidence.INFERRED and kind != Trigger.UNKNOWN
    return f"probably {text}" if probably else text


def trigger_with_verb_first(generation: Row, known: dict[str, str]) -> str:
    """Return why the rebalance began, for a column: `left: orders-3·9f2c`; with `probably` if that is inferred."""
    member, kind = generation["trigger_member_id"], generation["trigger"]
    if not member or kind not in VERBS:
        return trigger(generation, known)
    probably = "probably " if generation["trigger_evidence"] == Evidence.INFERRED else ""
    return f"{probably}{VERBS[Trigger(kind)]}: {known.get(member, visible(member_label(member), 60))}"


def numbered(generation: Row) -> str:
    """Return `generation 5`, `epoch 5`, or both the first and the last number of folded generations."""
    first, last = generation["generation_id"], generation.get("last_generation_id")
    name = term(generation)
    return f"{name} {first}" if last is None else f"{name}s {span(str(first), str(last))}"


def folded(generation: Row) -> str:
    """Return how many generations of a loop were folded into the row; empty if it is one."""
    number = count_of([generation])
    if number == 1:
        return ""
    return f"{numbered(generation)}: {number:,} that differ in number and times only"


def cause(name: str | None) -> str:
    """Return the cause of a diagnosis as a noun."""
    return next((text for kind, text in CAUSES.items() if kind == name), visible(name, 40))


def action(name: str) -> str:
    """Return the action of an advice as a noun."""
    return ACTIONS.get(AdviceAction(name), name.replace("_", " "))


def rebalance_length(generation: Row) -> str:
    """Return the rebalance's length, or its bounds."""
    if generation["rebalance_ms"] is not None:
        return duration(generation["rebalance_ms"])
    if generation["rebalance_ms_max"] is None:
        return "not completed"
    return between(generation["rebalance_ms_min"], generation["rebalance_ms_max"])


def lost(stalls: Sequence[Row]) -> loss_interval.Loss:
    """Return resource-seconds: the estimate and its 90 % interval. Stops without members or an end do not count."""
    ended = [s for s in stalls if s["cause"] != StallCause.NO_MEMBER and s["stopped_ms"] is not None]
    estimate, low, high = loss_interval.loss(
        (
            (s["incarnation"], s["generation_id"], s["from_member_id"]),
            s["stopped_ms_min"],
            s["stopped_ms"],
            s["stopped_ms_max"],
        )
        for s in ended
    )
    return estimate / 1000, low / 1000, high / 1000


def rebalance(found: Rebalance) -> str:
    """Return `m-7 left; everyone waited 24.0 s for m-3; 12 of 12 partitions stopped; 61 partition-seconds lost`."""
    g, known = found.generation, names(found.named)
    parts = [trigger(g, known)]
    if g["slowest_member_id"] and g["slowest_waited_ms"] is not None:
        slowest = known.get(g["slowest_member_id"], visible(member_label(g["slowest_member_id"]), 60))
        waited = duration(g["slowest_waited_ms"])
        is_classic = term(g) == "generation"
        parts.append(
            f"everyone waited {waited} for {slowest}" if is_classic else f"{slowest} reconciled last, {waited} behind"
        )
    parts.append(f"it took {rebalance_length(g)}")
    word = unit(g["group_type"])
    before = found.previous["resources_assigned"] if found.previous else None
    stalled = len({(s["name"], s["index"]) for s in found.stopped})
    if before:
        parts.append(f"{stalled} of {count(before, word)} stopped")
    elif stalled:
        parts.append(f"{count(stalled, word)} stopped")
    idle = any(s["cause"] == StallCause.NO_MEMBER for s in found.stopped)
    reason = not_costed(g)
    if reason is not None:
        parts.append(reason)
    if g["group_protocol"] == GroupProtocol.SHARE:
        parts.append("what it cost is not observed")
    elif is_costed(g):
        parts.append("the last member left, so no loss is counted" if idle else cost(found.stopped, word))
    if found.restarted:
        parts.append(f"later, static members that came back: {cost(found.restarted, word)}")
    return "; ".join(parts) + "."


def is_costed(generation: Row) -> bool:
    """Return whether the cost of a row of `generations` is known, except for partitions that do not exist."""
    return generation.get("not_costed") in (None, NotCosted.NO_SUCH_PARTITION)


def not_costed(generation: Row) -> str | None:
    """Return why resources of a row were not costed; None if all were, or if an earlier Regroup wrote the row."""
    known = generation.get("resources_not_costed")
    number = "resources" if known is None else count(known, "resource")
    match generation.get("not_costed"):
        case None:
            return None
        case NotCosted.TOO_LARGE:
            return f"not costed: its record lists {number}, more than the setting max_resources allows"
        case NotCosted.UNKNOWN_BEFORE:
            return "not costed: the previous assignment is unknown"
        case NotCosted.NO_SUCH_PARTITION:
            return f"{number} not costed: the leader assigned partitions that do not exist according to polls"
        case _:
            return "not costed: an assignment could not be decoded"


def generation_loss(generation: Row) -> str:
    """Return what a generation lost, with its interval, in resource-seconds; or that it is not costed."""
    if not is_costed(generation):
        return "not costed"
    low, high = generation["lost_low"], generation["lost_high"]
    text = loss_interval.written(generation["lost"], low, high) if generation["lost_max"] else "none"
    return text if not_costed(generation) is None else f"{text}, some not costed"


def cost(stalls: Sequence[Row], word: str) -> str:
    estimate, low, high = lost(stalls)
    if not high:
        return f"no {word}-seconds lost"
    return f"{loss_interval.written(estimate, low, high)} {word}-seconds lost"


def group(generations: Sequence[Row], state: Row | None, *, is_unread: bool = False, has_gaps: bool = False) -> str:
    """Describe the state strip. `generations` holds the generations of the window.

    `is_unread`: nothing of the window was read. `has_gaps`: a part of it was not.
    """
    now = f"Now {STYLES[style_of(state['state'], state['group_protocol'])].word}" if state else "State not known"
    if state and state["state_since_at"]:
        now += f" since {clock(state['state_since_at'])} {zone()}"
    if not generations and state and style_of(state["state"]) == "unknown":
        return f"{now}: whether it rebalanced is not known."
    if not generations:
        if is_unread:
            return f"{now}. Whether it rebalanced in this range is not known."
        return f"{now}. No rebalance in {'the part of this range that was read' if has_gaps else 'this range'}."
    estimate, low, high = loss_interval.summed((g["lost"], g["lost_low"], g["lost_high"]) for g in generations)
    word = unit(generations[0]["group_type"])
    longest = max(generations, key=lambda g: g["rebalance_ms"] or g["rebalance_ms_max"] or 0)
    when = f"{clock(longest['joined_at'])} {zone()} ({longest['trigger'].replace('_', ' ')})"
    left_out = sum(not_costed(g) is not None for g in generations)
    lost = f"{loss_interval.written(estimate, low, high)} {word}-seconds lost"
    if generations[0]["group_protocol"] == GroupProtocol.SHARE:
        lost = "what they cost is not observed"
    if left_out:
        lost += f" (of {left_out:,} of them some or all is not costed)"
    longest_took = f"the longest took {rebalance_length(longest)} at {when}"
    number, read = window_generations(generations), count_of(generations)
    if read < number:
        lost = f"of the newest {read:,} of them {lost}"
    return f"{now}. {count(number, 'rebalance')}, {lost}; {longest_took}."


def window_generations(generations: Sequence[Row]) -> int:
    """Return the number of generations of the window that the rows are from, also if not all of them were read."""
    return int(generations[0]["window_generations"]) if generations else 0


def waited(delays: Sequence[Segment]) -> str:
    """Return how long Connect delayed work, with a leading space; empty if it did not."""
    if not delays:
        return ""
    whole = duration(sum(s.end - s.start for s in delays))
    return f" Work waited for a worker to come back, or between two rounds of revocation, for {whole} in all."


def unread_note(gaps: Sequence[Row]) -> str:
    """Return the unread spans of the strip, with a leading space; empty if everything was read."""
    return "".join(
        f" Its records from {clock(g['from_at'])} to {clock(g['to_at'])} {zone()} were not read: "
        f"{visible(g['gap_reason'], 120)}."
        for g in gaps[:3]
    )
