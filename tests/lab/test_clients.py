"""Members of other client libraries: the lab runs those that this machine can build, and Regroup reports what they did.

All groups have the same incidents at the same time, so that the test takes little longer than for one.
"""

from __future__ import annotations

import importlib.util
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jobs.cli import main
from jobs.config.errors import UserError
from jobs.lab import client_programs
from jobs.lab.client_members import ClientPlan
from jobs.lab.lab import Lab
from jobs.lab.members import RunningGroup
from jobs.lab.scenarios import CLIENTS, chosen
from jobs.replay import Capture, split
from jobs.setup.lab_packages import LAB, lab_packages
from pipelines.silver.rows import silver_rows
from testing.waiting import wait_until
from testing.warehouses.rebuilding import histories

WITHIN_S = 300
BLOCKED_S = 12.0
"""Longer than the poll interval of 8 s by the time in which the others take over and commit."""

PLANS = {plan.group_id: plan for plan, _ in CLIENTS.groups if isinstance(plan, ClientPlan)}
EXPLAINED = {"first_member", "member_joined", "member_left", "session_expired", "cooperative_followup", "poll_timeout"}
# A leader of kafka-python may join again right after a rebalance, with the same plan, and it states no reason.
ALSO = {"kafka-python": {"leader_rejoined"}}
HAS_POLL_INTERVAL = {"aiokafka", "kafka-python"}
Rows = Mapping[str, list[dict[str, Any]]]


class LiveGroups:
    """The running groups on one broker, and Regroup's rows about each."""

    def __init__(self, lab: Lab, groups: list[RunningGroup], folder: Path) -> None:
        self._lab = lab
        self._folders = (folder / str(number) for number in count())
        self.groups = groups

    def rows(self) -> dict[str, Rows]:
        """The silver rows so far, by group."""
        folder = next(self._folders)
        command = ["capture", "--bootstrap-servers", self._lab.bootstrap_servers, "--out", str(folder)]
        if main([*command, "--duration", "0"]) != 0:
            return {}  # there is no offsets topic before the first group
        shutil.copy(self._lab.broker_logs[1], folder / "broker-1.log")
        capture = Capture(folder)
        read = histories(split(capture, ["offsets", "log"], 1, None), capture.meta)
        return {history.group_id: silver_rows(history, 10_000) for history in read if history.group_id in PLANS}

    def until(self, *, members: int, happened: str, of: Collection[str] = PLANS) -> dict[str, Rows]:
        """Return the rows once each of these groups is stable with this number of members, and has this event."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            rows = self.rows()
            missing = [
                group.plan.group_id
                for group in self.groups
                if group.plan.group_id in of
                and (
                    [("Stable", members)] != [(g["state"], g["member_count"]) for g in _of(rows, group, "groups")]
                    or happened not in {event["kind"] for event in _of(rows, group, "group_events")}
                )
            ]
            if not missing:
                return rows
            assert time.monotonic() < deadline, (missing, members, happened)
            time.sleep(1)


def _of(rows: Mapping[str, Rows], group: RunningGroup, table: str) -> list[dict[str, Any]]:
    return rows[group.plan.group_id][table] if group.plan.group_id in rows else []


@pytest.fixture(scope="module")
def described(tmp_path_factory) -> Iterator[dict[str, Rows]]:
    """Return the rows of all groups after a blocked handler, a clean leave and a kill."""
    groups: list[RunningGroup] = []

    def registered(group: RunningGroup, _rng: Random) -> Iterator[float]:
        groups.append(group)
        yield from ()

    scenario = replace(CLIENTS, groups=[(plan, registered) for plan, _ in chosen("clients")[0].groups])
    with Lab(tmp_path_factory.mktemp("lab"), scenario) as lab:
        wait_until(lambda: len(groups) == len(scenario.groups))
        live = LiveGroups(lab, groups, tmp_path_factory.mktemp("captures"))
        _play(live)
        yield live.until(members=1, happened="session_expired")


def _play(live: LiveGroups) -> None:
    for index in (0, 1):
        for group in live.groups:
            group.start(index)
    live.until(members=2, happened="joined")
    for group in live.groups:
        group.block(0, BLOCKED_S)
    time.sleep(BLOCKED_S)
    left_for_a_while = {name for name, plan in PLANS.items() if plan.library in HAS_POLL_INTERVAL}
    live.until(members=2, happened="poll_timeout", of=left_for_a_while)
    live.until(members=2, happened="joined")
    for group in live.groups:
        group.leave(1)
    live.until(members=1, happened="left")
    for group in live.groups:
        group.start(1)
    live.until(members=2, happened="left")
    for group in live.groups:
        group.kill(1)


@pytest.mark.slow
@pytest.mark.parametrize("group_id", PLANS)
def test_a_real_member_is_recognized_and_what_it_did_is_named(described, group_id) -> None:
    if missing := PLANS[group_id].lacking():
        pytest.skip(missing)
    library, rows = PLANS[group_id].library, described[group_id]
    shown = {(row["client_library"], row["client_library_sign"] is not None) for row in rows["generation_members"]}
    assert {(library, True)} == shown

    triggers = [row["trigger"] for row in rows["generations"]]
    assert EXPLAINED | ALSO.get(library, set()) >= set(triggers)
    assert triggers.count("poll_timeout") == (library in HAS_POLL_INTERVAL)
    # If the leader had just joined again, a member's end is not a trigger but an event of the rebalance in progress.
    ended_in = {row["trigger"] for row in rows["generations"] if row["left_member_ids"]}
    assert {"member_left", "session_expired"} <= set(triggers) or ended_in & ALSO.get(library, set())

    gone = {(row["kind"], row["client_id"], row["evidence"]) for row in rows["group_events"]}
    assert {("left", f"{group_id}-1", "observed"), ("session_expired", f"{group_id}-1", "observed")} <= gone
    assert ("poll_timeout", f"{group_id}-1") not in {(kind, client_id) for kind, client_id, _ in gone}


def test_a_group_whose_tools_are_missing_is_left_out_with_a_sentence(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    kept, left_out = chosen("clients,registry")
    assert ["fares-kafkapy", "schema-registry"] == [plan.group_id for plan, _ in kept.groups]
    assert 5 == len(left_out)
    assert "without fares-sarama: this machine has no Go 1.26 or newer, which its sarama members need" in left_out
    with pytest.raises(UserError, match=r"folder go cannot be built: this machine has no Go 1\.26 or newer\.$"):
        replace(client_programs.GO, build=lambda _: []).built()


def test_no_registry_is_named_in_the_locks_and_every_package_has_a_hash() -> None:
    texts = {path: path.read_text() for folder in ("go", "node", "python") for path in (LAB / folder).glob("*[mnkj]*")}
    assert not [path for path, text in texts.items() if "://" in text or "resolved" in text]
    assert {"golang", "npm", "pypi"} == {kind for kind, _, _ in lab_packages()}
    hashed = (LAB / "go" / "go.sum").read_text()
    for kind, name, version in lab_packages():
        assert kind != "golang" or f"{name} {version} h1:" in hashed, name
