"""Cheap hostile input, what the product makes from it, and budgets for the cost."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pyarrow as pa

from bench.load import offset_commit_key
from dashboards.lake.lake import milliseconds
from jobs.config.settings import Settings
from jobs.silver.silver_tasks import Making
from pipelines.arrow_types import stored
from pipelines.bronze_batch import Records, bronze
from pipelines.coverage import Span
from pipelines.decoding.source_record import SourceRecord
from pipelines.event_batch import TopicReader
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.rows import AnalysisConfig, gold_rows
from pipelines.gold.storms.disturbances import disturbances
from pipelines.gold.storms.incremental import StormScan
from pipelines.marks import mark_rows
from pipelines.reassignments.rows import reassignment_rows
from pipelines.rows_of_tables import by_table
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.frame import INPUTS
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS
from schemas.gold import MARKS
from schemas.rows import GroupHistory, MarkRow
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, STALLS

BEGIN_MS, APART_MS = 1_790_000_000_000, 20_000
GROUP = "payments"
MANAGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
PREFIX = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
GROWTH = 9.0
"""With 4 times the input, n log n work takes 4.5 times as long, and quadratic work 16 times."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Made:
    """The rows made from an input."""

    rows: int
    size: int

    def __add__(self, other: Made) -> Made:
        return Made(self.rows + other.rows, self.size + other.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """`make(n)` returns the size of hostile input in bytes, and the function that turns it into rows.

    The budgets are rows per kB of input, bytes of rows per byte of input, and seconds per MB.
    """

    name: str
    kind: str
    n: int
    make: Callable[[int], tuple[int, Callable[[], Made]]]
    rows_per_kb: float
    bytes_per_byte: float
    seconds_per_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of an attack with 4n of its input. `growth`: its time as a multiple of the time for n."""

    attack: Attack
    size: int
    made: Made
    seconds: float
    growth: float

    def exceeded(self) -> list[str]:
        """Return the names of the exceeded budgets."""
        attack, mb = self.attack, self.size / 1e6
        over = {
            "rows": self.made.rows > attack.rows_per_kb * self.size / 1e3,
            "bytes": self.made.size > attack.bytes_per_byte * self.size,
            "seconds": self.seconds > attack.seconds_per_mb * mb,
            "growth": self.growth > GROWTH,
        }
        return [name for name, is_over in over.items() if is_over]


def measured(attack: Attack, scale: float = 1.0) -> Cost:
    n = max(1, round(attack.n * scale))
    attack.make(n)[1]()  # compiles and fills caches
    few, _, _ = _timed(attack, n)
    seconds, size, made = _timed(attack, 4 * n)
    return Cost(attack=attack, size=size, made=made, seconds=seconds, growth=seconds / max(few, 0.01))


def _timed(attack: Attack, n: int) -> tuple[float, int, Made]:
    size, work = attack.make(n)
    began = time.thread_time()
    made = work()
    return time.thread_time() - began, size, made


# --- input -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    client_id: str
    instance_id: str | None = None


def generation(number: int, members: list[Member]) -> tuple[int, bytes, bytes]:
    """Return time, key and value of a GroupMetadata record whose members have one partition each."""
    at = BEGIN_MS + number * APART_MS
    topic = _string("orders")
    subscription = struct.pack(">hi", 1, 1) + topic + struct.pack(">ii", -1, 0)
    parts = b"".join(
        _string(each.member_id)
        + (_string(each.instance_id) if each.instance_id else struct.pack(">h", -1))
        + _string(each.client_id)
        + _string("/10.0.0.1")
        + struct.pack(">ii", 300_000, 45_000)
        + _bytes(subscription)
        + _bytes(struct.pack(">hi", 1, 1) + topic + struct.pack(">iii", 1, place, -1))
        for place, each in enumerate(members)
    )
    head = struct.pack(">h", 3) + _string("consumer") + struct.pack(">i", number) + _string("range")
    leader = _string(members[0].member_id) if members else struct.pack(">h", -1)
    value = head + leader + struct.pack(">qi", at, len(members)) + parts
    return at, struct.pack(">h", 2) + _string(GROUP), value


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _bytes(blob: bytes) -> bytes:
    return struct.pack(">i", len(blob)) + blob


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def fresh_client_ids(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records in which one member after the other joins, each in its own generation with its own client id."""
    return [generation(g, [Member(f"c{g}-{uuid(g)}", f"c{g}")]) for g in range(1, n + 1)]


def one_client_id(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records of members with one client id; each of four generations has other members."""
    return [generation(g, [Member(f"c-{uuid(g * n + m)}", "c") for m in range(n)]) for g in range(1, 5)]


def static_ids(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records of static members that all restart with a new member id in each of a generation's four records."""
    return [generation(g, [Member(f"i{m}-{uuid(g * n + m)}", "c", f"i{m}") for m in range(n)]) for g in (1, 1, 1, 2)]


def fresh_instance_ids(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records in which one static member after the other joins, each with its own instance id."""
    return [generation(g, [Member(f"i{g}-{uuid(g)}", "c", f"i{g}")]) for g in range(1, n + 1)]


def commits(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return commits of n groups and topics."""
    value = struct.pack(">hqibqb", 4, 5, 7, 1, BEGIN_MS, 0)
    return [(BEGIN_MS + i, offset_commit_key(f"g{i}", f"t{i}", 0), value) for i in range(n)]


def member_lines(n: int) -> list[bytes]:
    """Return lines of members of one generation that join and fail repeatedly."""
    texts = (
        (
            "Dynamic member with unknown member id joins group {group} in state Stable. Created a new member id "
            "{member} and added the member to the group."
        ),
        "Member {member} in group {group} has failed, removing it from the group.",
    )
    return [
        line(BEGIN_MS + APART_MS + i, text.format(group=GROUP, member=f"c{i}-{uuid(i)}"))
        for i in range(n)
        for text in texts
    ]


def rebalance_lines(n: int) -> list[bytes]:
    """Return lines of invented rebalances of one group."""
    state = "in state PreparingRebalance with old generation {number}"
    reason = "(reason: removing member x on LeaveGroup; client reason: not provided)."
    return [
        line(BEGIN_MS + APART_MS + i * 10 + after, text.format(group=GROUP, number=i))
        for i in range(n)
        for after, text in (
            (0, f"Preparing to rebalance group {{group}} {state} {reason}"),
            (5, "Stabilized group {group} generation {number} with 1 members."),
        )
    ]  # fmt: skip


def long_lines(n: int) -> list[bytes]:
    """Return lines of 8 kB each that match a pattern of ours except at the end, for every repeatable part of a line."""
    parts = (" ", " (", "a", "] INFO ", " in group ", " generation 5 with ", "(reason: ", "; client reason: ", "1", "-")
    head = f"[2026-11-21 10:00:00,123] INFO {PREFIX}Preparing to rebalance group "
    return [
        f"{start}{part * (8_000 // len(part))} oordinator".encode()
        for i in range(n)
        for start, part in [((head, head[:31], head[:26])[i % 3], parts[i // 3 % len(parts)])]
    ]


def marks(n: int) -> list[bytes]:
    """Return marks of the whole cluster, one second apart."""
    return [json.dumps({"kind": "mark", "text": f"deploy {i}", "at": BEGIN_MS + i * 1000}).encode() for i in range(n)]


def controller_lines(n: int) -> list[bytes]:
    """Return lines about invented reassignments of n topics."""
    text = (
        "[QuorumController id=1] Replayed partition assignment change PartitionChangeRecord(partitionId=0, "
        "topicId=AAAAAAAAAAAAAAAAAAAAAA, isr=null, leader=-2, replicas=[1, 2], removingReplicas=[1], "
        "addingReplicas=[2]) for topic t{}"
    )
    logger = "org.apache.kafka.controller.ReplicationControlManager"
    return [line(BEGIN_MS + i, text.format(i), logger) for i in range(n)]


def line(at_ms: int, message: str, logger: str = MANAGER) -> bytes:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    prefix = PREFIX if logger == MANAGER else ""
    return f"[{at:%Y-%m-%d %H:%M:%S},{at_ms % 1000:03}] INFO {prefix}{message} ({logger})".encode()


# --- work ------------------------------------------------------------------------------------------------------------


def of_records(records: list[tuple[int, bytes, bytes]]) -> tuple[int, Callable[[], Made]]:
    """Return the size of these records, and a function that makes bronze, silver and gold from them."""
    size = sum(len(key) + len(value) for _, key, value in records)
    return size, lambda: _layers(records, [])


def of_lines(messages: list[bytes]) -> tuple[int, Callable[[], Made]]:
    """Return the size of these messages, and a function that makes bronze, silver and gold from them and three
    generations.
    """
    records = fresh_client_ids(3)
    return sum(map(len, messages)), lambda: _layers(records, messages)


def of_marks(messages: list[bytes]) -> tuple[int, Callable[[], Made]]:
    """Return the size of these messages, and a function that makes marks and diagnoses of 100 generations from them."""
    records = fresh_client_ids(100)
    return sum(map(len, messages)), lambda: _layers(records, messages)


def of_polls(messages: list[bytes], polls: int = 200) -> tuple[int, Callable[[], Made]]:
    """Return the size of these messages, and a function that makes reassignments from them and `polls` polls."""
    seen = [
        {"observed_at": BEGIN_MS + i * 15_000, "kind": "reassignments", "body": {"ongoing": []}} for i in range(polls)
    ]

    def work() -> Made:
        read = _events(messages)
        found = reassignment_rows("c", seen, milliseconds(_table(read[COORDINATOR_EVENTS.name])).to_pylist())
        made = [len(json.dumps(row, default=str)) for rows in by_table(found).values() for row in rows]
        return Made(len(made), sum(made)) + _of_arrays(read)

    return sum(map(len, messages)), work


def _layers(records: list[tuple[int, bytes, bytes]], messages: list[bytes]) -> Made:
    made = bronze(Records.of((SourceRecord(0, at, *row) for at, row in enumerate(records)), 0), cluster="c")
    read = _events(messages)
    known = {name: _table((made | read).get(table.name)) for name, table in INPUTS.items()}
    making = Making(quiet_ms=Settings().quiet_ms, hosts=ClientHosts(), topic_names={})
    tables = making.rows(known, pa.table({}))
    total = _of_arrays(made) + _of_arrays(read)
    total += Made(sum(t.num_rows for t in tables.values()), sum(t.nbytes for t in tables.values()))
    observed = milliseconds(_table(read[ADMIN_OBSERVATIONS.name])).to_pylist()
    announced = mark_rows(observed)
    rows = [_sized(announced)]
    announced_ms = milliseconds(stored(announced, MARKS)).to_pylist()
    silver = {
        table.name: [row for row in milliseconds(tables[table]).to_pylist() if row["group_id"] == GROUP]
        for table in (GENERATIONS, GENERATION_MEMBERS, STALLS, GROUP_EVENTS)
    }
    if silver[GENERATIONS.name]:
        rows += [_sized(found) for found in _gold(cast("GroupHistory", silver), cast("list[MarkRow]", announced_ms))]
    return sum(rows, total)


def _gold(silver: GroupHistory, announced: list[MarkRow]) -> Iterable[Sequence[Mapping[str, Any]]]:
    until = max(g["joined_at"] for g in silver["generations"])
    yield from gold_rows(
        "c", GROUP, silver, broker=BrokerSettings(), terms=AnalysisConfig(), since_ms=0, until_ms=until, marks=announced
    ).values()
    shaken = disturbances(GROUP, silver["generations"], silver["group_events"])
    looked = StormScan(cluster="c", stored=[], since_ms=0, first_seen_at={GROUP: BEGIN_MS})
    looked.shake_together(shaken)
    looked.storms({GROUP: shaken})


def _events(messages: list[bytes]) -> dict[str, pa.StructArray]:
    reading = TopicReader(cluster="c", topic="t", layout="default", zone="UTC")
    span = Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(messages))
    records = (SourceRecord(0, at, BEGIN_MS, None, message) for at, message in enumerate(messages))
    return reading(Records.of(records, 0), {0: span})


def _table(rows: pa.StructArray | None) -> pa.Table:
    return pa.table({}) if rows is None else pa.Table.from_struct_array(rows)


def _of_arrays(arrays: dict[str, pa.StructArray]) -> Made:
    return Made(sum(map(len, arrays.values())), sum(array.nbytes for array in arrays.values()))


def _sized(rows: Sequence[Mapping[str, Any]]) -> Made:
    return Made(len(rows), sum(len(json.dumps(row, default=str)) for row in rows))


def _attack(
    name: str,
    write: Callable[[int], Any],
    *,
    kind: str,
    read: Callable[[Any], tuple[int, Callable[[], Made]]],
    n: int,
    budget: tuple[float, float, float],
) -> Attack:
    """Return an attack. `budget`: rows per kB, bytes per byte, seconds per MB."""
    rows, size, seconds = budget
    return Attack(
        name=name,
        kind=kind,
        n=n,
        make=lambda many: read(write(many)),
        rows_per_kb=rows,
        bytes_per_byte=size,
        seconds_per_mb=seconds,
    )


RECORDS: dict[str, Any] = {"kind": "records", "read": of_records}
LINES: dict[str, Any] = {"kind": "lines", "read": of_lines}
ATTACKS = (
    _attack("fresh client ids", fresh_client_ids, **RECORDS, n=300, budget=(60, 20, 90)),
    _attack("fresh instance ids", fresh_instance_ids, **RECORDS, n=300, budget=(60, 20, 90)),
    _attack("one client id", one_client_id, **RECORDS, n=200, budget=(45, 20, 400)),
    _attack("static restarts", static_ids, **RECORDS, n=200, budget=(20, 15, 200)),
    _attack("commits of many groups", commits, **RECORDS, n=2_000, budget=(70, 15, 10)),
    _attack("members that join and fail", member_lines, **LINES, n=1_000, budget=(6, 5, 3)),
    _attack("invented rebalances", rebalance_lines, **LINES, n=1_000, budget=(6, 5, 3)),
    _attack("long lines", long_lines, **LINES, n=200, budget=(2, 2, 3)),
    _attack("marks", marks, kind="marks", read=of_marks, n=2_000, budget=(40, 12, 10)),
    _attack("invented reassignments", controller_lines, kind="polls", read=of_polls, n=300, budget=(12, 8, 20)),
)
