"""A random part of `regroup bench fuzz-captures` and `fuzz-settings`; REGROUP_SEED repeats the same part."""

from __future__ import annotations

import os
import time
from random import Random

import pytest

from testing.fuzzing.captures import fuzz_captures
from testing.fuzzing.settings import fuzz_settings

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("REGROUP_SEED", time.time_ns() % 1_000_000))


@pytest.mark.parametrize(("fuzz", "count"), [(fuzz_captures, 1_000), (fuzz_settings, 4_000)])
def test_whatever_is_in_a_file_it_is_taken_or_refused_in_one_sentence(fuzz, count) -> None:
    found = fuzz(count, Random(SEED))
    assert found.crashes == [], f"repeat with REGROUP_SEED={SEED}"
    assert found.slowest_s < 1, f"repeat with REGROUP_SEED={SEED}"
    assert found.extra_mb < 256
    assert 0.1 < found.counts["refused in one sentence"] / count < 0.95
