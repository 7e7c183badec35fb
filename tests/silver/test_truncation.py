"""Records that compaction or a late start removed make rows fewer, never wrong."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest

from jobs.replay import Capture
from pipelines.silver.history import History, Record
from pipelines.silver.rows import silver_rows
from schemas.rows import SilverRows
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, histories

NAMES = ("rolling_restart", "migration")


@pytest.fixture(scope="module", params=NAMES)
def recorded(request) -> list[History]:
    return histories(batches(request.param), Capture(CAPTURES / request.param).meta)


def rebuilt(history: History, records: list[Record]) -> SilverRows:
    return silver_rows(dataclasses.replace(history, records=records), 10_000)


def compacted(records: list[Record], upto: int) -> list[Record]:
    """Return the last record of each key up to a position in the log, and everything after it."""
    last = {(r.kind, r.member_id, r.expression): r.position for r in records[:upto]}
    kept = set(last.values())
    return [r for i, r in enumerate(records) if i >= upto or r.position in kept]


def stops(rows: SilverRows) -> set[tuple[int, str, int]]:
    return {(s["stopped_by_offset"], s["name"], s["index"]) for s in rows["stalls"]}


def test_compaction_invents_no_stop(recorded) -> None:
    for history in recorded:
        whole = stops(silver_rows(history, 10_000))
        for seed in range(10):
            upto = Random(seed).randrange(len(history.records) + 1)
            assert stops(rebuilt(history, compacted(history.records, upto))) <= whole


def test_a_late_start_invents_no_stop(recorded) -> None:
    for history in recorded:
        whole = stops(silver_rows(history, 10_000))
        for seed in range(10):
            first = Random(seed).randrange(len(history.records))
            assert stops(rebuilt(history, history.records[first:])) <= whole


def test_lost_records_break_no_key(recorded) -> None:
    for history in recorded:
        for seed in range(10):
            random = Random(seed)
            rows = rebuilt(history, [r for r in history.records if random.random() < 0.8])
            keys = [(g["incarnation"], g["generation_id"]) for g in rows["generations"]]
            assert len(keys) == len(set(keys))
            for s in rows["stalls"]:
                assert s["stopped_ms"] is None or s["stopped_ms_min"] <= s["stopped_ms"] <= s["stopped_ms_max"]
