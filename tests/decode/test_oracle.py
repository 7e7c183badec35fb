"""Kafka 4.4.0's own coordinator reads every field of every record as we do."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from testing.records.oracle import differences
from testing.records.samples import clients, damaged, golden, written_ones

CAPTURES = Path(__file__).parents[1] / "captures"


def test_real_records_read_as_kafka_reads_them():
    records = [*golden(), *clients()]
    for file in sorted(CAPTURES.glob("*/offsets.parquet")):
        table = pq.read_table(file, columns=["key", "value"])
        records += zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    assert 20_000 < len(records)
    assert [] == list(differences(records, all_are_kafkas=True))


def kafkas() -> list[tuple[bytes, bytes | None]]:
    """Written by our layouts, less what 4.4.0 has not: type 24, and type 0 with the newer versions that 4.0 still took."""
    return [
        (key, value)
        for key, value in written_ones(newest_only=True)
        if key[1] != 24 and not (key[1] == 0 and value and value[1] > 0)
    ]


def test_every_layout_is_kafkas():
    assert [] == list(differences(kafkas(), all_are_kafkas=True))


def test_damaged_records_that_both_accept_read_alike():
    records = damaged([*golden(), *kafkas()], 6_000, Random(431))
    assert [] == list(differences(records, all_are_kafkas=False))
