"""Partitions of `__consumer_offsets` that could not be loaded or written: one incident for all of their groups.

Any of these signs shows such a partition, each with the condition that ends it:

- the coordinator logged that it failed to load the partition; until a broker loads it, or the failed one gives it up,
- appends to the partition failed, again and again; until a record is written,
- the leader logged that fewer replicas are in sync than `min.insync.replicas`; until it logs another set,
- polls show no leader, or fewer replicas in sync than `min.insync.replicas`; until a poll shows otherwise.

A shrunk ISR alone is no sign, because every restart of a broker shrinks it. Neither is what a restart of a broker or a
normal failover causes, if it lasts less than `LASTING_MS`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.gold.patterns.cluster_findings import ClusterFacts, ClusterFinding, Row, named
from pipelines.gold.wording import shortened
from schemas.controller_log import PartitionEventKind
from schemas.coordinator_log import EventKind
from schemas.records import OFFSETS_TOPIC
from schemas.states import Evidence, Pattern, Trigger
from schemas.thresholds import MINUTE_MS
from schemas.written import count, duration, instant

NO_LEADER = "no leader"
LASTING_MS = MINUTE_MS
"""Minimum duration of a sign, except of a failed load that has not ended: a normal failover loads within seconds."""

NEAR_MS = 5 * MINUTE_MS
"""Signs of one partition within this time are one incident, and appends that fail within it are one series."""

FEWEST = 3
"""Minimum number of failed appends in a series."""

HARMLESS = (
    "larger than", "RecordTooLarge", "correct coordinator", "NOT_COORDINATOR", "NotCoordinator", "ot the leader",
    "otLeader", "NOT_LEADER", "ot leader", "does not exist", "closed", "shut", "fenced", "Fenced",
)  # fmt: skip
"""Parts of error texts that concern one record or one producer, or that a former coordinator gets."""

FAILED_APPENDS = (EventKind.WRITE_FAILED, PartitionEventKind.APPEND_FAILED, EventKind.PREPARING)
LOADS = (EventKind.COORDINATOR_LOADED, EventKind.COORDINATOR_LOADING)
GIVEN_UP = (EventKind.COORDINATOR_RESIGNED, EventKind.COORDINATOR_UNLOADING, EventKind.COORDINATOR_UNLOADED)
ISR = (PartitionEventKind.ISR_UPDATED, PartitionEventKind.ISR_UNDER_MIN, PartitionEventKind.ISR_EXPANDING)
LINE_KINDS = (*FAILED_APPENDS[:2], *LOADS, *GIVEN_UP, *PartitionEventKind, EventKind.COORDINATOR_LOAD_FAILED)
"""Kinds of lines that are read, besides the starts of rebalances after an assignment could not be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sign:
    """Trouble of one partition from one source. `ended` is None while it lasts, `last` when the data last shows it."""

    began: int
    ended: int | None
    last: int
    times: int
    source: str
    evidence: Evidence
    text: str
    is_failed_load: bool = False


def offsets_partitions_down(facts: ClusterFacts) -> list[ClusterFinding]:
    """Return the incidents of offsets partitions, with every group of the partition."""
    by_partition: dict[int, list[Row]] = defaultdict(list)
    for line in facts.lines:
        partition = line["source_partition"]
        if partition is None and line["group_id"] is not None:
            partition = facts.partition_of.get(line["group_id"])
        if partition is not None:
            by_partition[partition].append(line)
    polled = _polled(facts)
    found = []
    for partition in sorted(by_partition.keys() | polled.keys()):
        lines = by_partition[partition]
        signs = [
            *_failed_loads(facts, partition, lines),
            *_failed_appends(facts, partition, lines),
            *_under_min(facts, partition, lines),
            *polled.get(partition, ()),
        ]
        lasting = [s for s in signs if s.last - s.began >= LASTING_MS or (s.is_failed_load and s.ended is None)]
        found += [_finding(facts, partition, incident, lines) for incident in _incidents(lasting)]
    return found


def _failed_loads(facts: ClusterFacts, partition: int, lines: Sequence[Row]) -> Iterator[_Sign]:
    open_until = -1
    for at, line in enumerate(lines):
        if line["event_kind"] != EventKind.COORDINATOR_LOAD_FAILED or line["event_at"] < open_until:
            continue
        if _is_harmless(line) or _is_given_up(lines[:at], line["broker_id"]):
            continue
        began, broker = line["event_at"], line["broker_id"]
        over = (
            later["event_at"]
            for later in lines[at + 1 :]
            if later["event_kind"] == EventKind.COORDINATOR_LOADED
            or (later["event_kind"] in GIVEN_UP and later["broker_id"] == broker)
        )
        ended = _first(next(over, None), facts.written_after(partition, began))
        again = [
            e for e in lines[at:] if e["event_kind"] == line["event_kind"] and (ended is None or e["event_at"] < ended)
        ]
        open_until = facts.until_ms + 1 if ended is None else ended
        why = f": {cut_reason(line['reason'])}" if line["reason"] else ""
        yield _Sign(
            began=began,
            ended=ended,
            last=facts.until_ms if ended is None else ended,
            times=len(again),
            source="log",
            evidence=Evidence.OBSERVED,
            text=f"Broker {'?' if broker is None else broker} could not load it{why}.",
            is_failed_load=True,
        )


def _failed_appends(facts: ClusterFacts, partition: int, lines: Sequence[Row]) -> Iterator[_Sign]:
    series: list[Row] = []
    for line in [*(line for line in lines if _is_failed_append(line)), None]:
        if series and (line is None or line["event_at"] - series[-1]["event_at"] > NEAR_MS):
            times = max(Counter(each["event_kind"] for each in series).values())
            began, last = series[0]["event_at"], series[-1]["event_at"]
            if times >= FEWEST and last - began >= LASTING_MS:
                written = facts.written_after(partition, last)
                is_over = written is not None or facts.until_ms - last > NEAR_MS
                why = next((f", such as “{cut_reason(e['reason'])}”" for e in series if _is_reason(e)), "")
                yield _Sign(
                    began=began,
                    ended=(written or last) if is_over else None,
                    last=(written or last) if is_over else last,
                    times=times,
                    source="log",
                    evidence=Evidence.OBSERVED,
                    text=f"{count(times, 'write')} failed{why}.",
                )
            series = []
        if line is not None:
            series.append(line)


def _is_failed_append(line: Row) -> bool:
    if line["event_kind"] not in FAILED_APPENDS:
        return False
    if line["event_kind"] == EventKind.PREPARING and line["trigger"] != Trigger.ASSIGNMENT_FAILED:
        return False
    return not _is_harmless(line)


def _is_harmless(line: Row) -> bool:
    return any(text in (line["reason"] or "") for text in HARMLESS)


def _is_given_up(before: Sequence[Row], broker: int | None) -> bool:
    """Return whether the broker gave the partition up after it had begun to load it, so the load had to fail."""
    mine = [line["event_kind"] for line in before if line["broker_id"] == broker]
    newest = next((kind for kind in reversed(mine) if kind in (EventKind.COORDINATOR_LOADING, *GIVEN_UP)), None)
    return newest in GIVEN_UP


def _is_reason(line: Row) -> bool:
    return line["event_kind"] == EventKind.WRITE_FAILED and bool(line["reason"])


def _under_min(facts: ClusterFacts, partition: int, lines: Sequence[Row]) -> Iterator[_Sign]:
    began: Row | None = None
    for line in [*(line for line in lines if line["event_kind"] in ISR), None]:
        is_under = line is not None and line["event_kind"] == PartitionEventKind.ISR_UNDER_MIN
        if began is None:
            began = line if is_under else None
        elif not is_under:
            since = began["event_at"]
            ended = _first(None if line is None else line["event_at"], facts.written_after(partition, since))
            brokers = ", ".join(map(str, began["isr"] or ())) or "none"
            yield _Sign(
                began=since,
                ended=ended,
                last=facts.until_ms if ended is None else ended,
                times=1,
                source="log",
                evidence=Evidence.OBSERVED,
                text=f"Only {brokers} were in sync, fewer than min.insync.replicas, so every write was refused.",
            )
            began = None


def _polled(facts: ClusterFacts) -> dict[int, list[_Sign]]:
    found: dict[int, list[_Sign]] = defaultdict(list)
    since: dict[int, tuple[int, str]] = {}
    for poll in facts.topic_polls:
        for each in poll["partitions"]:
            why, partition = _poll_trouble(each, facts.min_isr), each["partition"]
            if why is not None:
                began, text = since.get(partition, (poll["at"], why))
                since[partition] = began, NO_LEADER if NO_LEADER in (why, text) else text
            elif partition in since:
                began, text = since.pop(partition)
                found[partition].append(_of_polls(began, poll["at"], poll["at"], text))
    for partition, (began, text) in since.items():
        last = max(began, facts.polled_until_ms or began)
        found[partition].append(_of_polls(began, None, last, text))
    return found


def _of_polls(began: int, ended: int | None, last: int, text: str) -> _Sign:
    shown = f"Polls show {text}."
    return _Sign(began=began, ended=ended, last=last, times=1, source="poll", evidence=Evidence.BOUNDED, text=shown)


def _poll_trouble(partition: Row, min_isr: int | None) -> str | None:
    if partition.get("leader") == -1:
        return NO_LEADER
    isr, replicas = partition.get("isr"), partition.get("replicas")
    if isr is None or min_isr is None:
        return None
    # A partition never needs more replicas in sync than it has (`Partition.effectiveMinIsr`).
    needed = min_isr if replicas is None else min(min_isr, len(replicas))
    return f"{count(len(isr), 'replica')} in sync, but min.insync.replicas is {min_isr}" if len(isr) < needed else None


def _incidents(signs: Sequence[_Sign]) -> Iterator[list[_Sign]]:
    """Yield signs that overlap or are near each other, as one incident each, in order."""
    incident: list[_Sign] = []
    for sign in sorted(signs, key=lambda s: (s.began, s.source, s.text)):
        if incident and sign.began > _end(incident) + NEAR_MS:
            yield incident
            incident = []
        incident.append(sign)
    if incident:
        yield incident


def _open(incident: Sequence[_Sign]) -> list[_Sign]:
    return [sign for sign in incident if sign.ended is None]


def _end(incident: Sequence[_Sign]) -> int:
    return max(sign.last for sign in incident)


def _finding(facts: ClusterFacts, partition: int, incident: Sequence[_Sign], lines: Sequence[Row]) -> ClusterFinding:
    began, is_open, end = incident[0].began, bool(_open(incident)), _end(incident)
    groups = sorted(
        group["group_id"]
        for group in facts.groups
        if facts.partition_of.get(group["group_id"]) == partition
        and not group["is_deleted"]
        and (group["first_seen_at"] or 0) <= end
    )
    texts = list(dict.fromkeys(sign.text for sign in incident))
    how_long = f"since {instant(began)}" if is_open else f"for {duration(end - began)} from {instant(began)}"
    observed = {sign.evidence for sign in incident}
    hit = f"Its {count(len(groups), 'group')} could not commit or rebalance" if groups else "No group of it is known"
    return ClusterFinding(
        pattern=Pattern.OFFSETS_PARTITION_DOWN,
        subject=f"{OFFSETS_TOPIC}-{partition}",
        started_at=began,
        last_at=end,
        ended_at=None if is_open else end,
        times=max(sign.times for sign in incident),
        group_ids=groups,
        instances=[f"broker {broker}" for broker in _brokers(incident, lines)],
        sources=sorted({sign.source for sign in incident}),
        evidence=Evidence.OBSERVED if Evidence.OBSERVED in observed else Evidence.BOUNDED,
        explanation=" ".join(
            [
                f"{OFFSETS_TOPIC}-{partition} was down {how_long}.",
                *texts,
                *_shrunk(incident, lines),
                f"{hit}{': ' + named(groups, 'group') if groups else ''}.",
            ]
        ),
        action=_action(incident),
    )


def _brokers(incident: Sequence[_Sign], lines: Sequence[Row]) -> list[int]:
    kinds = (EventKind.COORDINATOR_LOAD_FAILED, *FAILED_APPENDS, PartitionEventKind.ISR_UNDER_MIN)
    return sorted(
        {
            line["broker_id"]
            for line in lines
            if line["event_kind"] in kinds
            and line["broker_id"] is not None
            and incident[0].began <= line["event_at"] <= _end(incident)
        }
    )


def _shrunk(incident: Sequence[_Sign], lines: Sequence[Row]) -> list[str]:
    """Return a sentence on the last time that replicas dropped out shortly before or during the incident."""
    shrunk = [
        line
        for line in lines
        if line["event_kind"] == PartitionEventKind.ISR_SHRINKING
        and incident[0].began - NEAR_MS <= line["event_at"] <= _end(incident)
    ]
    if not shrunk:
        return []
    left = ", ".join(map(str, shrunk[-1]["isr"] or ())) or "none"
    return [f"Its in-sync replicas shrank to {left} at {instant(shrunk[-1]['event_at'])}."]


def _action(incident: Sequence[_Sign]) -> str:
    if any(sign.is_failed_load for sign in incident):
        return (
            "Read the error in that broker's log. Move the partition's leader to another replica (a new preferred "
            "leader, or a restart of that broker), which loads it again. If every replica fails, look for records "
            "that this Kafka version cannot read, and for damaged segments."
        )
    return (
        "Bring the brokers of its replicas back, and look at their disks and their network. If a broker will not "
        "return, reassign the partition to live brokers. Until then, restarting members of its groups does not help."
    )


def cut_reason(text: str) -> str:
    """Return an error's text for a sentence, at most 200 characters of it, without a final full stop."""
    return shortened(text) if len(text) > 200 else text.rstrip(".")


def _first(*times: int | None) -> int | None:
    return min((at for at in times if at is not None), default=None)
