"""The verdict on each completed rebalance of a group: the broker, the application, a deploy or the configuration.

A verdict follows from the cause that the diagnosis assigns. A verdict can be known although the cause is not: a member
that was silent before it was gone has crashed, paused or polled too late, and the application is responsible for each
of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pipelines.gold.diagnosis.causes import Context, Found, cause_of, context
from pipelines.gold.diagnosis.departures import Departure, lost_together
from pipelines.gold.diagnosis.losses import RebalanceLoss, losses, overtaken
from pipelines.gold.diagnosis.silences import Silences, silences
from pipelines.gold.instance_tracker import Number
from pipelines.gold.marks_nearby import is_deployed
from pipelines.gold.memberships import Silver, number
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from schemas.folded_rows import count_of
from schemas.rows import GenerationRow, MarkRow, VerdictSumRow
from schemas.states import DiagnosisCause, Evidence, GroupEventKind, Verdict
from schemas.thresholds import LOOP, SHORT_SESSION_MS

VERDICTS: Mapping[DiagnosisCause, Verdict] = {
    DiagnosisCause.COORDINATOR: Verdict.BROKER,
    DiagnosisCause.POLL_TIMEOUT: Verdict.CLIENT_APPLICATION,
    DiagnosisCause.SESSION_EXPIRY: Verdict.CLIENT_APPLICATION,
    DiagnosisCause.POD_FAILURE: Verdict.CLIENT_APPLICATION,
    DiagnosisCause.CRASH_LOOP: Verdict.CLIENT_APPLICATION,
    DiagnosisCause.SLOW_JOINER: Verdict.CLIENT_APPLICATION,
    DiagnosisCause.LEADER_FLAPPING: Verdict.CLIENT_APPLICATION,
    DiagnosisCause.REJOIN_LOOP: Verdict.CLIENT_APPLICATION,
    DiagnosisCause.DEPLOY: Verdict.DEPLOY_OR_SCALING,
    DiagnosisCause.SCALING: Verdict.DEPLOY_OR_SCALING,
    DiagnosisCause.TOPIC_CHANGES: Verdict.CONFIGURATION,
    DiagnosisCause.MIXED_PROTOCOLS: Verdict.CONFIGURATION,
    DiagnosisCause.PROBING: Verdict.CONFIGURATION,
    DiagnosisCause.FOLLOW_UPS: Verdict.UNKNOWN,
    DiagnosisCause.CONNECT_DELAY: Verdict.UNKNOWN,
    DiagnosisCause.UNKNOWN: Verdict.UNKNOWN,
}
"""The verdict of every cause. Other facts about the rebalance, or about the rebalance that it follows, may show
another."""

FOLLOWING = (DiagnosisCause.FOLLOW_UPS, DiagnosisCause.PROBING, DiagnosisCause.CONNECT_DELAY)
"""Causes of rebalances that finish an earlier one. They take its verdict; probing only if that was a deploy."""

MAY_BE_SILENCE = (DiagnosisCause.UNKNOWN, DiagnosisCause.DEPLOY, DiagnosisCause.SCALING)
"""Causes of departures whose kind is not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on the rebalance to a generation, and what it rests on.

    - `follows`: the earlier generation whose verdict this one takes.
    - `silent`: members that had been silent when they were gone, if that decides the verdict, and `silent_ms`: the
      longest of these silences.
    - `left_on_their_own`: whether its members were at work until they were gone, if that decides the verdict.
    - `is_session_short`: whether paused members keep being removed because of a short session timeout.
    - `together`: number of members that were lost at once, if that leaves the verdict open.
    - `ended`: the departures of the rebalance, or before arrivals in it, with a known change of the member's pod.
    """

    row: GenerationRow
    found: Found
    verdict: Verdict
    evidence: Evidence
    loss: RebalanceLoss
    follows: Number | None = None
    silent: tuple[Departure, ...] = ()
    silent_ms: int = 0
    left_on_their_own: bool = False
    is_session_short: bool = False
    together: int = 0
    ended: tuple[Departure, ...] = ()

    @property
    def instances(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(d.instance.label for d in self.silent)) or tuple(dict.fromkeys(self.found.instances))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """The verdicts on a group's completed rebalances, in order, and the facts that they rest on.

    `parts` has, by completed generation, the generations that it overtook and itself.
    """

    known: Context
    parts: Mapping[Number, Sequence[Number]]
    rebalances: Sequence[Judged]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What the verdicts of one group share. `lost_departures` are those of members that fell silent or whose
    sessions expired.
    """

    known: Context
    silences: Silences
    lost_departures: Sequence[Departure]
    marks: Sequence[MarkRow]
    is_session_short: bool


def judgment(
    silver: Silver,
    start_ms: int = 0,
    marks: Sequence[MarkRow] = (),
    known: Context | None = None,
    pods: PodIndex = NO_PODS,
) -> Judgment:
    """Return the verdicts on the rebalances that joined at `start_ms` or later.

    `silver` has the rows of one group, in any order; without stalls, losses are 0. `marks` are rows of that table, of
    the group or its whole cluster, in order of time. `known` is the context of `silver` with these `pods` of the
    cluster, if it was made already.
    """
    rows = [g for g in sorted(silver["generations"], key=number) if g["joined_at"] >= start_ms]
    known, parts = known or context(silver, pods), overtaken(rows)
    stalls = silver.get("stalls", ())
    lost = losses(stalls, rows, parts)
    silent = silences(known, stalls, {number(g): g["joined_at"] for g in silver["generations"]})
    facts = _Facts(
        known=known,
        silences=silent,
        lost_departures=[d for mine in known.departures.values() for d in mine if _is_lost(d, silent)],
        marks=marks,
        is_session_short=_is_session_short(known),
    )
    before: dict[Number, Judged] = {}
    for g in rows:
        if number(g) in parts:
            before[number(g)] = _judged(g, facts, lost[number(g)], before)
    return Judgment(known=known, parts=parts, rebalances=list(before.values()))


def sums(judged: Iterable[Judged]) -> list[VerdictSumRow]:
    """Return the number of rebalances and their loss per verdict: the greatest loss first, then the most rebalances."""
    rebalances: Counter[Verdict] = Counter()
    lost: Counter[Verdict] = Counter()
    for j in judged:
        rebalances[j.verdict] += count_of([j.row])
        lost[j.verdict] += j.loss.best
    ordered = sorted(rebalances, key=lambda verdict: (-lost[verdict], -rebalances[verdict], verdict))
    return [{"verdict": v.value, "rebalances": rebalances[v], "lost_resource_seconds": lost[v] / 1000} for v in ordered]


def heaviest(judged: Iterable[Judged]) -> Verdict:
    """Return the verdict with the greatest loss of at least one rebalance."""
    return Verdict(sums(judged)[0]["verdict"])


def _judged(g: GenerationRow, facts: _Facts, loss: RebalanceLoss, before: Mapping[Number, Judged]) -> Judged:
    found = cause_of(g, facts.known)
    changes = facts.known.changes(g)
    gone = [d for d in (c if isinstance(c, Departure) else c.after for c in changes) if d is not None]
    ended = tuple({id(d): d for d in gone if d.pod is not None}.values())
    verdict = VERDICTS[found.cause]
    plain = Judged(row=g, found=found, verdict=verdict, evidence=found.evidence, loss=loss, ended=ended)
    if found.cause in FOLLOWING:
        return _following(plain, before)
    if found.cause == DiagnosisCause.SESSION_EXPIRY:
        return _expired(plain, gone, facts)
    if found.cause in MAY_BE_SILENCE and any(d.pod is None for d in gone):
        plain = _by_commits(plain, gone, facts)
    if plain.verdict == Verdict.UNKNOWN and not plain.together and (first := _returned_from(gone, before)) is not None:
        return replace(plain, verdict=first.verdict, evidence=Evidence.INFERRED, follows=number(first.row))
    if found.cause == DiagnosisCause.DEPLOY and is_deployed(g["joined_at"], facts.marks):
        return replace(plain, evidence=Evidence.OBSERVED)
    return plain


def _by_commits(plain: Judged, gone: Sequence[Departure], facts: _Facts) -> Judged:
    """Return the verdict that the commits of the members show, if their departures are not recorded."""
    if together := _lost_at_once(gone, facts):
        return replace(plain, verdict=Verdict.UNKNOWN, evidence=Evidence.INFERRED, together=together)
    if silent := tuple(d for d in gone if facts.silences.was_silent(d)):
        longest = max(map(facts.silences.length_ms, silent))
        return replace(
            plain,
            verdict=Verdict.CLIENT_APPLICATION,
            evidence=Evidence.INFERRED,
            silent=silent,
            silent_ms=longest,
        )
    # Members that come back only finish what their departure began.
    left = [d for d in gone if d.membership.left_in == number(plain.row)] or gone
    is_unknown = plain.found.cause == DiagnosisCause.UNKNOWN
    if is_unknown and left and all(facts.silences.left_on_its_own(d) for d in left):
        return replace(plain, verdict=Verdict.DEPLOY_OR_SCALING, evidence=Evidence.INFERRED, left_on_their_own=True)
    return plain


def _following(plain: Judged, before: Mapping[Number, Judged]) -> Judged:
    """Return the verdict of the rebalance that this one finishes; for Connect's delay, of the departure before."""
    cause = plain.found.cause
    earlier = [j for n, j in before.items() if n[0] == plain.row["incarnation"]]
    if cause == DiagnosisCause.CONNECT_DELAY:
        earlier = [j for j in earlier if j.row["left_member_ids"]] or earlier
    first = earlier[-1] if earlier else None
    if first is None or (cause == DiagnosisCause.PROBING and first.verdict != Verdict.DEPLOY_OR_SCALING):
        return plain
    is_observed = plain.evidence == first.evidence == Evidence.OBSERVED
    evidence = Evidence.OBSERVED if is_observed else Evidence.INFERRED
    return replace(plain, verdict=first.verdict, evidence=evidence, follows=number(first.row))


def _returned_from(gone: Sequence[Departure], before: Mapping[Number, Judged]) -> Judged | None:
    """Return the rebalance in which the members of this one had gone, if it has a verdict."""
    left_in = [d.membership.left_in for d in gone]
    earlier = [before[n] for n in left_in if n is not None and n in before]
    return next((j for j in reversed(earlier) if j.verdict != Verdict.UNKNOWN), None)


def _expired(plain: Judged, gone: Sequence[Departure], facts: _Facts) -> Judged:
    """Return the verdict on an expired session.

    One member that is silent while the others are not, or members of one host: the application or its machine. All
    members of several hosts at once: unknown. Paused members that a short session timeout keeps removing: the setting.
    """
    if facts.is_session_short and any(_is_removed_too_soon(d) for d in gone):
        return replace(plain, verdict=Verdict.CONFIGURATION, evidence=Evidence.INFERRED, is_session_short=True)
    if together := _lost_at_once(gone, facts, is_logged=True):
        return replace(plain, verdict=Verdict.UNKNOWN, evidence=Evidence.INFERRED, together=together)
    return plain


def _is_lost(d: Departure, silences: Silences) -> bool:
    return silences.was_silent(d) or d.membership.departure_kind == GroupEventKind.SESSION_EXPIRED


def _lost_at_once(gone: Sequence[Departure], facts: _Facts, *, is_logged: bool = False) -> int:
    """Return the number of members if the group lost all of them, at least two, within seconds and in silence; else 0.

    Without the coordinator's log that may be a failure of the coordinator. With it, members of a single host point to
    that host.
    """
    for d in gone:
        if not _is_lost(d, facts.silences):
            continue
        near, there = lost_together(d, facts.lost_departures, facts.known.instances)
        hosts = {o.membership.client_host for o in near}
        if len(near) >= max(2, len(there)) and (len(hosts) > 1 or not is_logged):
            return len(near)
    return 0


def _is_session_short(known: Context) -> bool:
    return sum(_is_removed_too_soon(d) for mine in known.departures.values() for d in mine) >= LOOP


def _is_removed_too_soon(d: Departure) -> bool:
    """Return whether a paused process was back as soon as a short session timeout had removed it."""
    return d.is_only_paused and 0 < d.membership.session_timeout_ms <= SHORT_SESSION_MS
