"""SIGKILL at the worst moments: no alert is missed, none is sent more than once too often, and each is resolved."""

from __future__ import annotations

from collections import Counter

import pytest

from schemas.bronze import COVERAGE
from schemas.gold import STORMS
from schemas.silver import GROUPS
from testing.alerts.killing import configured, killed, notify
from testing.alerts.rows import coverage, now, row, storm, write
from testing.alerts.until_killed import POINTS
from testing.waiting import wait_until


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_misses_nothing_and_repeats_at_most_once(point, tmp_path, warehouse, alertmanager, received) -> None:
    options = configured(tmp_path, warehouse, alertmanager.url, received.url)
    write(warehouse, GROUPS, [row(GROUPS, group_id="orders", is_deleted=False)])
    found = storm(at=now())
    for status, is_open in (("firing", True), ("resolved", False)):
        write(warehouse, COVERAGE, [coverage(at=now())])
        write(warehouse, STORMS, [found | {"is_open": is_open}])
        killed(point, tmp_path / "halted", *options)
        assert 0 == notify("notify", "--once", *options).wait(120)
        mine = [post for post in received.bodies("/hook") if post["status"] == status]
        assert len(mine) in (1, 2), "told, and at most once too often"
        assert len({post["id"] for post in mine}) == 1, "and then it says that it is the same"
        wait_until(lambda s=status: any(post["status"] == s for post in received.bodies("/on-call")))
    assert Counter(post["status"] for post in received.bodies("/on-call")) == {"firing": 1, "resolved": 1}
