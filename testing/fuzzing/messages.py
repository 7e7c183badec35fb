"""Mutated records and log lines, read by the functions that make bronze, and by Kafka's own coordinator."""

from __future__ import annotations

import faulthandler
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any

from pipelines.bronze_batch import Records, bronze
from pipelines.coverage import Span
from pipelines.decoding.record_decoding import Decoded, decode_record
from pipelines.decoding.source_record import SourceRecord
from pipelines.event_batch import TopicReader
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from testing.fuzzing.findings import STUCK_S, Findings, peak_mb
from testing.fuzzing.mutations import Record, mutated_lines, mutated_records
from testing.records.oracle import compared, kafka_reads

AT_ONCE = 500
AGREED = "both read the same"
DIFFERENT = "both read it, and not the same"


def fuzz_records(count: int, random: Random) -> Findings:
    return _run(count, mutated_records(random), _of_records)


def fuzz_lines(count: int, random: Random) -> Findings:
    return _run(count, ((None, message) for message in mutated_lines(random)), _of_messages)


def _of_records(records: Records) -> Counter[str]:
    rows = bronze(records, cluster="c")
    verdicts = Counter(f"quarantined: {reason}" for reason in rows[QUARANTINE.name].field("reason").to_pylist())
    commits = sum(rows[OFFSET_COMMITS.name].field("commits").to_pylist())
    return verdicts + Counter({"decoded": commits + len(rows[COORDINATOR_RECORDS.name])})


_READING = TopicReader(cluster="c", topic="t", layout="default", zone="UTC")


def _of_messages(records: Records) -> Counter[str]:
    span = Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(records.key))
    rows = _READING(records, {0: span})
    verdicts = Counter(f"quarantined: {reason}" for reason in rows[QUARANTINE.name].field("reason").to_pylist())
    # A message may contain several lines.
    events = rows[COORDINATOR_EVENTS.name].field("line_no").to_pylist()
    refused = set(rows[QUARANTINE.name].field("source_offset").to_pylist())
    others = len(records.key) - len(refused | set(events)) - span.skipped
    return verdicts + Counter({"decoded": len(set(events) - refused) + others, "ignored": span.skipped})


def _run(count: int, inputs: Iterator[tuple[Any, Any]], read: Callable[[Records], Counter[str]]) -> Findings:
    found = Findings()
    with suppress(Exception):
        read(_columns(list(islice(inputs, AT_ONCE))))  # loads the inputs, and compiles the reading code
    before = peak_mb()
    began = time.monotonic()
    for start in range(0, count, AT_ONCE):
        some = list(islice(inputs, min(AT_ONCE, count - start)))
        faulthandler.dump_traceback_later(STUCK_S, exit=True)
        at = time.thread_time()
        try:
            found.counts += read(_columns(some))
        except Exception:  # noqa: BLE001 - the run looks for exceptions
            _one_by_one(some, read, found)
        found.slowest_s = max(found.slowest_s, time.thread_time() - at)
    faulthandler.cancel_dump_traceback_later()
    found.seconds, found.extra_mb = time.monotonic() - began, peak_mb() - before
    return found


def _one_by_one(some: Sequence[tuple[Any, bytes]], read: Callable[[Records], Counter[str]], found: Findings) -> None:
    for each in some:
        try:
            found.counts += read(_columns([each]))
        except Exception as error:  # noqa: BLE001 - the run looks for exceptions
            found.counts["crashed"] += 1
            found.crashes.append(f"{error!r:.200}: {each!r:.2000}")


def _columns(some: Sequence[tuple[Any, bytes]]) -> Records:
    records = (SourceRecord(0, at, 1_790_000_000_000, key, value) for at, (key, value) in enumerate(some))
    return Records.of(records, log_epoch=0)


def compared_with_kafka(records: Sequence[Record]) -> tuple[Counter[str], list[str]]:
    """Return the number of records by the verdicts of Kafka 4.4.0's coordinator and ours, and all differing results."""
    verdicts: Counter[str] = Counter()
    differences = []
    for (key, value), kafka in zip(records, kafka_reads(records), strict=True):
        ours = decode_record(key, value)
        takes = "reads" if kafka.get("unread") == 0 else "leaves bytes" if "unread" in kafka else "refuses"
        if not isinstance(ours, Decoded):
            verdicts["both refuse" if takes == "refuses" else f"Kafka {takes}, we say {ours.reason}"] += 1
        elif takes != "reads":
            verdicts[f"we read {ours.record_kind} v{ours.value_version}, Kafka {takes}"] += 1
        elif differing := list(compared(ours, kafka)):
            verdicts[DIFFERENT] += 1
            differences.append(f"{differing} in {key.hex()} {value.hex() if value is not None else '-'}")
        else:
            verdicts[AGREED] += 1
    return verdicts, differences
