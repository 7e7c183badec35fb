"""A random part of `regroup bench fuzz`; REGROUP_SEED repeats the same part."""

from __future__ import annotations

import os
import time
from itertools import islice
from random import Random

import pytest

from testing.fuzzing.messages import AGREED, compared_with_kafka, fuzz_lines, fuzz_records
from testing.fuzzing.mutations import mutated_records

pytestmark = pytest.mark.slow

COUNT = 20_000
SEED = int(os.environ.get("REGROUP_SEED", time.time_ns() % 1_000_000))


@pytest.mark.parametrize("fuzz", [fuzz_records, fuzz_lines])
def test_whatever_comes_is_decoded_ignored_or_quarantined_at_once(fuzz) -> None:
    found = fuzz(COUNT, Random(SEED))
    assert found.crashes == [], f"repeat with REGROUP_SEED={SEED}"
    assert COUNT == found.counts.total(), f"repeat with REGROUP_SEED={SEED}"
    assert not found.hangs, f"{found.slowest_s} s: repeat with REGROUP_SEED={SEED}"
    assert found.extra_mb < 256
    assert 0.01 < found.counts["decoded"] / COUNT < 0.99


def test_what_kafka_reads_of_damaged_records_we_read_alike() -> None:
    verdicts, differences = compared_with_kafka(list(islice(mutated_records(Random(SEED)), 3_000)))
    assert differences == [], f"repeat with REGROUP_SEED={SEED}"
    assert verdicts[AGREED] > 100
