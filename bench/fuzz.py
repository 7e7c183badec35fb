"""Records and log lines of chance: whether each is decoded, ignored or quarantined, at once and in little memory.

Real ones of every kind, changed (see `bench.mutations`), go through the functions that make bronze of what Kafka
delivers. A part of the records is also read by Kafka's own coordinator, to compare.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from bench.mutations import Record, mutated_lines, mutated_records
from pipelines.bronze_batch import Records, SourceRecord, bronze
from pipelines.coverage import Span
from pipelines.event_batch import TopicReader
from pipelines.record_decoding import Decoded, decode_record
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from tests.decode.oracle.oracle import compared, kafka_reads

AT_ONCE = 500
HANG_S = 1.0
STUCK_S = 120.0
AGREED = "both read the same"
DIFFERENT = "both read it, and not the same"


@dataclass(slots=True)
class Findings:
    """How a run went. `counts` has each record or message once, by what became of it."""

    counts: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    seconds: float = 0.0
    extra_mb: float = 0.0

    @property
    def hangs(self) -> bool:
        """Whether some `AT_ONCE` inputs together took as long as one must not."""
        return self.slowest_s > HANG_S


def fuzz_records(count: int, random: Random) -> Findings:
    return _run(count, mutated_records(random), _of_records)


def fuzz_lines(count: int, random: Random) -> Findings:
    return _run(count, ((None, message) for message in mutated_lines(random)), _of_messages)


def _of_records(records: Records) -> Counter[str]:
    rows = bronze(records, cluster="c")
    told = Counter(f"quarantined: {reason}" for reason in rows[QUARANTINE.name].field("reason").to_pylist())
    commits = sum(rows[OFFSET_COMMITS.name].field("commits").to_pylist())
    return told + Counter({"decoded": commits + len(rows[COORDINATOR_RECORDS.name])})


_READING = TopicReader(cluster="c", topic="t", layout="default", zone="UTC")


def _of_messages(records: Records) -> Counter[str]:
    span = Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(records.key))
    rows = _READING(records, {0: span})
    told = Counter(f"quarantined: {reason}" for reason in rows[QUARANTINE.name].field("reason").to_pylist())
    # A message may hold several lines.
    events = rows[COORDINATOR_EVENTS.name].field("line_no").to_pylist()
    refused = set(rows[QUARANTINE.name].field("source_offset").to_pylist())
    others = len(records.key) - len(refused | set(events)) - span.skipped
    return told + Counter({"decoded": len(set(events) - refused) + others, "ignored": span.skipped})


def _run(count: int, inputs: Iterator[tuple[Any, Any]], read: Callable[[Records], Counter[str]]) -> Findings:
    found = Findings()
    with suppress(Exception):
        read(_columns(list(islice(inputs, AT_ONCE))))  # loads what is changed, and compiles what reads it
    before = _peak_mb()
    began = time.monotonic()
    for start in range(0, count, AT_ONCE):
        some = list(islice(inputs, min(AT_ONCE, count - start)))
        faulthandler.dump_traceback_later(STUCK_S, exit=True)
        at = time.thread_time()
        try:
            found.counts += read(_columns(some))
        except Exception:  # noqa: BLE001 - what is looked for
            _one_by_one(some, read, found)
        found.slowest_s = max(found.slowest_s, time.thread_time() - at)
    faulthandler.cancel_dump_traceback_later()
    found.seconds, found.extra_mb = time.monotonic() - began, _peak_mb() - before
    return found


def _one_by_one(some: Sequence[tuple[Any, bytes]], read: Callable[[Records], Counter[str]], found: Findings) -> None:
    for each in some:
        try:
            found.counts += read(_columns([each]))
        except Exception as error:  # noqa: BLE001 - what is looked for
            found.counts["crashed"] += 1
            found.crashes.append(f"{error!r:.200}: {each!r:.2000}")


def _columns(some: Sequence[tuple[Any, bytes]]) -> Records:
    records = (SourceRecord(0, at, 1_790_000_000_000, key, value) for at, (key, value) in enumerate(some))
    return Records.of(records, log_epoch=0)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def beside_kafka(records: Sequence[Record]) -> tuple[Counter[str], list[str]]:
    """By what Kafka 4.3.1's coordinator and we make of each, how many; and every difference in what both read."""
    verdicts: Counter[str] = Counter()
    differences = []
    for (key, value), kafka in zip(records, kafka_reads(records), strict=True):
        ours = decode_record(key, value)
        takes = "reads" if kafka.get("unread") == 0 else "leaves bytes" if "unread" in kafka else "refuses"
        if not isinstance(ours, Decoded):
            verdicts["both refuse" if takes == "refuses" else f"Kafka {takes}, we say {ours.reason}"] += 1
        elif takes != "reads":
            verdicts[f"we read {ours.record_kind} v{ours.value_version}, Kafka {takes}"] += 1
        elif said := list(compared(ours, kafka)):
            verdicts[DIFFERENT] += 1
            differences.append(f"{said} in {key.hex()} {value.hex() if value is not None else '-'}")
        else:
            verdicts[AGREED] += 1
    return verdicts, differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="so many records and so many messages")
    parser.add_argument("--compare", type=int, default=50_000, help="so many records beside Kafka's own decoder")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    is_good = True
    for name, fuzz in (("records", fuzz_records), ("log lines", fuzz_lines)):
        found = fuzz(asked.records, Random(asked.seed))
        is_good &= not found.crashes and not found.hangs
        _report(name, found)
    verdicts, differences = beside_kafka(list(islice(mutated_records(Random(asked.seed + 1)), asked.compare)))
    _table(f"{asked.compare:,} records beside Kafka's decoder", verdicts)
    print(*differences[:20], sep="\n")
    return 0 if is_good and not differences else 1


def _report(name: str, found: Findings) -> None:
    _table(f"{found.counts.total():,} {name}", found.counts)
    slowest = f"slowest {AT_ONCE} together {found.slowest_s:.3f} s"
    print(f"  {len(found.crashes)} crashed, {slowest}, {found.seconds:.0f} s, {found.extra_mb:.0f} MB more at the peak")
    print(*found.crashes[:5], sep="\n")


def _table(title: str, counts: Counter[str]) -> None:
    print(title)
    for what, count in counts.most_common():
        print(f"  {count:>9,} {count / max(1, counts.total()):7.2%}  {what}")


if __name__ == "__main__":
    sys.exit(main())
