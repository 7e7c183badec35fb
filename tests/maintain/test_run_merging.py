"""Merged runs are those of one wide batch, and silver rebuilt from them is the same row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.replay import Capture, bronze_of
from pipelines.arrow_types import schema_of
from pipelines.bronze_batch import bronze_rows
from pipelines.decoding.source_record import SourceRecord
from pipelines.run_merging import merged
from pipelines.silver.rows import silver_rows
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from schemas.silver import SILVER
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, histories_of, with_duplicates
from tests.source.offset_records import commit, commit_key, deletion, group_record

Row = dict[str, Any]
NAMES = ("eager_churn", "rolling_restart", "migration", "streams", "outage")


def unreadable(offset: int) -> Any:
    return SourceRecord(0, offset, 0, commit_key("g"), b"\xff")


def arrow(rows: Sequence[Row], table: Any) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema_of(table))


def merge(rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    tables = (OFFSET_COMMITS, COORDINATOR_RECORDS, QUARANTINE)
    return merged(*(arrow(rows.get(table.name, ()), table) for table in tables)).to_pylist()


def ordered(rows: Sequence[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def bronze(name: str, given: Sequence[Any]) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = {}
    for batch in given:
        for table, rows in bronze_of(batch, "kafka", Capture(CAPTURES / name).meta).items():
            out.setdefault(table, []).extend(rows)
    return out


def silver(rows: Mapping[str, list[Row]]) -> dict[str, list[str]]:
    made = [silver_rows(history, 10_000) for history in histories_of([rows])]
    return {table.name: ordered([row for each in made for row in each[table.name]]) for table in SILVER}


@pytest.mark.parametrize("name", NAMES)
def test_merging_the_runs_of_many_batches_gives_those_of_one(name) -> None:
    whole, parts = bronze(name, batches(name)), bronze(name, batches(name, count=60))
    assert len(whole[OFFSET_COMMITS.name]) < len(parts[OFFSET_COMMITS.name])
    assert ordered(whole[OFFSET_COMMITS.name]) == ordered(merge(parts))


@pytest.mark.parametrize("name", NAMES)
def test_silver_from_merged_runs_is_silver_from_unmerged_ones(name) -> None:
    for given_batches in (batches(name, count=60), with_duplicates(batches(name, count=7, seed=1), 0.1, 1)):
        rows = bronze(name, given_batches)
        together = rows | {OFFSET_COMMITS.name: merge(rows)}
        assert len(together[OFFSET_COMMITS.name]) < len(rows[OFFSET_COMMITS.name])
        assert silver(rows) == silver(together)


what = st.sampled_from(["commit", "commit", "commit", "repeat", "deletion", "group", "late", "unreadable"])


@settings(max_examples=80)
@given(st.lists(st.tuples(what, st.booleans()), min_size=1, max_size=25))
def test_wherever_batches_were_cut_merging_gives_the_runs_of_one(story) -> None:
    records, edges, committed, at_ms = [], [0], 0, 1_000
    for offset, (kind, is_edge) in enumerate(story, 1):
        at_ms += 700_000 if kind == "late" else 1_000
        committed += kind in ("commit", "late")
        made = {"deletion": deletion, "group": group_record, "unreadable": unreadable}.get(kind)
        records.append(made(offset) if made else commit(offset, at_ms=at_ms, committed=committed))
        edges += [offset] if is_edge else []
    edges.append(len(records))
    parts: dict[str, list[Row]] = {}
    for a, b in pairwise(edges):
        for table, rows in bronze_rows(records[a:b], cluster="c", log_epoch=0).items():
            parts.setdefault(table, []).extend(rows)
    whole = bronze_rows(records, cluster="c", log_epoch=0)
    assert ordered(whole[OFFSET_COMMITS.name]) == ordered(merge(parts))
