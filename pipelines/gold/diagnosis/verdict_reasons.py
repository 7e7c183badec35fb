"""The reason of a verdict in one sentence. Names in it are untrusted; whoever displays it must escape them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipelines.gold.diagnosis.departures import Departure
from pipelines.gold.diagnosis.verdicts import Judged
from pipelines.gold.pod_ends import PodEnd
from pipelines.gold.wording import first_names
from schemas.rows import GroupEventRow
from schemas.states import DiagnosisCause, Evidence, GroupEventKind, GroupType, PodChange, Trigger
from schemas.written import capitalized, count, duration

NORMAL = "; normal"


MOST_PODS = 3
"""Pods that a reason names. `proof` has further ones."""


def reason(j: Judged, coordinator_events: Sequence[GroupEventRow] = ()) -> str:
    """Return why the rebalance has its verdict. `coordinator_events` are moves and failures shortly before it.

    If Kubernetes reported something of its members' pods shortly before they were gone, further sentences say that.
    """
    return " ".join(filter(None, (_reason(j, coordinator_events), pods_sentence(j.ended))))


def pods_sentence(ended: Sequence[Departure]) -> str:
    """Return what happened to the members' pods: `The pod billing-7f was OOMKilled 1.2 s before its member was gone
    (observed).` The sentence is empty if nothing is known.
    """
    parts = [pod_words(d.pod) for d in ended if d.pod is not None]
    if not parts:
        return ""
    further = len(parts) - MOST_PODS
    shown = "; ".join(parts[:MOST_PODS]) + (f"; and {count(further, 'more')}" if further > 0 else "")
    return f"{capitalized(shown)} (observed)."


def pod_words(end: PodEnd) -> str:
    """Return `the pod billing-7f was OOMKilled 1.2 s before its member was gone`."""
    if end.change["pod"] is None:
        what = f"the node {end.pod} of its pod stopped answering or was removed"
    else:
        what = f"the pod {end.pod} {POD_WORDS[end.kind]}"
    return f"{what} {duration(end.before_ms)} before its member was gone"


def _reason(j: Judged, coordinator_events: Sequence[GroupEventRow]) -> str:
    by_members = _by_members(j)
    if by_members is not None:
        return by_members
    if j.found.cause == DiagnosisCause.COORDINATOR:
        return _coordinator(j, coordinator_events)
    sentence = SENTENCES.get(j.found.cause)
    return capitalized(f"{j.found.cause.says.removesuffix(NORMAL)}.") if sentence is None else sentence(j)


def _by_members(j: Judged) -> str | None:
    """Return the reason if other facts than the cause decided the verdict."""
    if j.together:
        return (
            f"All {count(j.together, 'member')} of the group were lost at once: the broker, the network or the "
            "application; no source shows which."
        )
    if j.silent:
        return (
            f"{named(j)} had stopped working {duration(j.silent_ms)} before {_it(j)} {_was(j)} gone, as a process does "
            "that crashed, paused or polled too late."
        )
    if j.left_on_their_own:
        own = "their own" if len(j.instances) > 1 else "its own"
        return (
            f"{named(j)} worked until {_it(j)} {_was(j)} gone and {_was(j)} neither silent nor late: {_it(j)} left on "
            f"{own}."
        )
    if j.is_session_short:
        return (
            f"{named(j)} was back as soon as it was removed, like others before: the session timeout is shorter than "
            "the pauses of these processes."
        )
    if j.follows is not None:
        return f"It finishes the rebalance to generation {j.follows[1]} and has its verdict{_how(j)}."
    return None


POD_WORDS: Mapping[PodChange, str] = {
    PodChange.OOM_KILLED: "was OOMKilled",
    PodChange.PROBE_FAILED: "had a container killed by its probe",
    PodChange.CONTAINER_FAILED: "had a container that failed",
    PodChange.EVICTED: "was evicted",
    PodChange.NODE_LOST: "lost its node",
    PodChange.DRAINED: "was drained from its node",
    PodChange.DELETED: "was deleted",
}


def named(j: Judged) -> str:
    """Return the names of the instances: `orders-7, orders-2 and 3 others`."""
    return first_names(j.instances) or "A member"


def _it(j: Judged) -> str:
    return "they" if len(j.instances) > 1 else "it"


def _was(j: Judged) -> str:
    return "were" if len(j.instances) > 1 else "was"


def _how(j: Judged) -> str:
    match j.found.cause:
        case DiagnosisCause.FOLLOW_UPS:
            return ": members gave up resources first and rejoined to hand them out"
        case DiagnosisCause.CONNECT_DELAY:
            return ": Connect's delay for the lost worker ended"
        case DiagnosisCause.PROBING:
            return ": Kafka Streams checked whether warm-up tasks had caught up"
    return f": {named(j)} came back" if j.instances else ""


def _coordinator(j: Judged, events: Sequence[GroupEventRow]) -> str:
    moves = [e for e in events if e["kind"] == GroupEventKind.COORDINATOR_MOVED]
    if not moves:
        return "The coordinator could not store the group's assignment, so the members had to start again."
    g, last = j.row, moves[-1]
    began = g["prepared_at"] if g["prepared_at"] is not None else g["joined_at"]
    detail = last["detail"] or "another broker loaded the group"
    if j.found.evidence == Evidence.OBSERVED or last["event_at"] >= began:
        return f"The group's coordinator moved during the rebalance ({detail}), so the members had to join again there."
    return (
        f"The group's coordinator moved {duration(began - last['event_at'])} before ({detail}); members that do not "
        "find it in time, or that it does not know, lose their place."
    )


def _poll_timeout(j: Judged) -> str:
    limits = f"{named(j)} did not poll within its max.poll.interval.ms"
    return f"{limits}, and the others waited for it." if _is_delayed(j) else f"{limits}."


def _session_expiry(j: Judged) -> str:
    lost = f"{named(j)} sent no heartbeat within its session timeout: it crashed, paused or lost its connection"
    return f"{lost}, and the others waited for it." if _is_delayed(j) else f"{lost}."


def _slow_joiner(j: Judged) -> str:
    waited = duration(j.found.waited_ms)
    began = j.found.set_off_by.value.replace("_", " ")
    if not j.found.instances:
        return (
            f"All members had stopped {waited} before the last of them joined, as in most rebalances of this group: a "
            "member is slow to join, for example in its revocation callback; the coordinator's log would name it. The "
            f"rebalance itself began for another cause ({began})."
        )
    return f"The others waited {waited} for {named(j)} to join; the rebalance itself began for another cause ({began})."


def _deploy(j: Judged) -> str:
    return f"{named(j)} {_was(j)} stopped and came back or {_was(j)} replaced, as in a restart or deploy."


def _scaling(j: Judged) -> str:
    if j.row["trigger"] == Trigger.FIRST_MEMBER:
        return "The group started."
    if j.row["is_empty"]:
        return "The last member left."
    return f"{named(j)} joined for the first time or left for good."


def _topic_changes(j: Judged) -> str:
    if j.row["group_type"] == GroupType.CONNECT:
        return "Connectors or tasks were reconfigured."
    return "Topics, partitions or subscriptions changed."


def _unknown(j: Judged) -> str:
    if j.instances:
        return f"How {named(j)} left or why it rejoined is not recorded; the coordinator's log would show it."
    return "The same members rejoined, and no source shows why; the coordinator's log would show it."


def _is_delayed(j: Judged) -> bool:
    return j.found.set_off_by != j.found.cause


SENTENCES: Mapping[DiagnosisCause, Callable[[Judged], str]] = {
    DiagnosisCause.POLL_TIMEOUT: _poll_timeout,
    DiagnosisCause.SESSION_EXPIRY: _session_expiry,
    DiagnosisCause.POD_FAILURE: lambda j: f"{named(j)} lost {'their pods' if len(j.instances) > 1 else 'its pod'}.",
    DiagnosisCause.CRASH_LOOP: lambda j: f"{named(j)} leaves and comes back again and again within minutes.",
    DiagnosisCause.SLOW_JOINER: _slow_joiner,
    DiagnosisCause.LEADER_FLAPPING: lambda j: (
        f"{named(j)}, the leader, rejoins again and again with nothing to change."
    ),
    DiagnosisCause.DEPLOY: _deploy,
    DiagnosisCause.SCALING: _scaling,
    DiagnosisCause.TOPIC_CHANGES: _topic_changes,
    DiagnosisCause.MIXED_PROTOCOLS: lambda _: "Members have different assignors or protocols.",
    DiagnosisCause.UNKNOWN: _unknown,
}
"""Other causes are described by the vocabulary."""
