"""Cheap hostile input costs rows, bytes and time in proportion to its size."""

from __future__ import annotations

import pytest

from testing.hostile.attacks import ATTACKS
from testing.hostile.cost import measured

pytestmark = pytest.mark.slow

SMALL = {attack.name: 100 / attack.n for attack in ATTACKS} | {"marks": 1.0, "fresh instance ids": 0.5}
"""Few marks would cost less than the hundred generations that are analyzed with them. Members that left are remembered
for the time of a restart, within which the work is quadratic: with fewer instance ids, only that would be measured."""
QUICK = [attack for attack in ATTACKS if attack.name not in ("one client id", "static restarts")]


@pytest.mark.parametrize("attack", QUICK, ids=lambda attack: attack.name)
def test_rows_and_bytes_stay_within_their_factors_and_time_grows_no_faster_than_n_log_n(attack):
    cost = measured(attack, scale=SMALL[attack.name])
    assert cost.size > 0
    # Seconds depend on the machine; a growth of 16 is quadratic.
    assert [] == [name for name in cost.exceeded() if name in ("rows", "bytes")]
    assert cost.growth < 12
