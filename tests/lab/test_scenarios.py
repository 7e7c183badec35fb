"""The scenarios: each has a name, reports what is missing, and its members are real ones of their kind."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.command_line.record_arguments import SCENARIOS as ON_THE_COMMAND_LINE
from jobs.config.errors import UserError
from jobs.kafka.admin_poll import Poller
from jobs.lab.client_members import ClientPlan
from jobs.lab.cluster import LocalCluster
from jobs.lab.members import RunningGroup
from jobs.lab.scenarios import SCENARIOS, chosen
from jobs.replay import Capture, split
from pipelines.silver.rows import silver_rows
from testing.waiting import wait_until
from testing.warehouses.rebuilding import histories

pytestmark = pytest.mark.slow

WITHIN_S = 300
SCENES = count(1)
NOTHING: dict[str, list] = {"groups": [], "group_events": [], "generations": []}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """One broker for a member or two of every kind."""
    everything = chosen("kip848,streams,share,connect,registry")[0]
    overrides = everything.overrides | {"group.initial.rebalance.delay.ms": 0, "log.cleaner.enable": "false"}
    folder = tmp_path_factory.mktemp("lab")
    with LocalCluster(folder, overrides=overrides) as running:
        running.create_topics({plan.topic: plan.partitions for plan, _ in everything.groups})
        yield running


class Scene:
    """One group of a scenario, and Regroup's rows about it."""

    def __init__(self, group: RunningGroup, cluster: LocalCluster, folder: Path) -> None:
        self.group = group
        self._cluster = cluster
        self._folders = (folder / str(number) for number in count())

    def described(self):
        """The silver rows so far."""
        folder = next(self._folders)
        servers = self._cluster.bootstrap_servers
        if main(["capture", "--bootstrap-servers", servers, "--out", str(folder), "--duration", "0"]) != 0:
            return NOTHING  # there is no offsets topic before the first group
        shutil.copy(self._cluster.brokers[0].log_file, folder / "broker-1.log")
        capture = Capture(folder)
        for history in histories(split(capture, ["offsets", "log"], 1, None), capture.meta):
            if history.group_id == self.group.plan.group_id:
                return silver_rows(history, 10_000)
        return NOTHING

    def until(self, *, members: int, events: list[str], resources: int = 0):
        """Return the rows once the group is stable with these numbers of members and resources and has these events."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            rows = self.described()
            happened = sorted(str(row["kind"]) for row in rows["group_events"])
            found = [(row["state"], row["member_count"]) for row in rows["groups"]]
            owned = (rows["generations"][-1]["resources_assigned"] or 0) if rows["generations"] else 0
            if found == [("Stable", members)] and owned >= resources and not set(events) - set(happened):
                return rows
            assert time.monotonic() < deadline, (found, owned, happened)
            time.sleep(0.3)


@contextmanager
def scene(cluster: LocalCluster, folder: Path, scenario: str, index: int = 0):
    plan = SCENARIOS[scenario].groups[index][0]
    # A group of its own: members of an earlier scene are in its group until their sessions expire.
    plan = replace(plan, group_id=f"{plan.group_id}-{next(SCENES)}")
    plan.prepare()
    group = RunningGroup(
        plan=plan,
        bootstrap_servers=cluster.bootstrap_servers,
        folder=cluster.brokers[0].directory,
        say=lambda _: None,
    )
    try:
        yield Scene(group, cluster, folder)
    finally:
        group.end()


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_can_be_chosen_on_the_command_line(name):
    groups = SCENARIOS[name].groups
    assert [group for group in groups if not (isinstance(group[0], ClientPlan) and group[0].lacking())] == (
        chosen(name)[0].groups
    )
    assert name in ON_THE_COMMAND_LINE.split(", ")


def test_scenarios_chosen_together_are_one_with_all_their_groups_and_brokers():
    both, left_out = chosen("kip848,failover")
    assert (3, []) == (both.brokers, left_out)
    assert [*SCENARIOS["kip848"].groups, *SCENARIOS["failover"].groups] == both.groups


def test_an_unknown_scenario_is_named_with_the_nearest():
    with pytest.raises(UserError, match="no lab scenario 'stream': did you mean 'streams'"):
        chosen("kip848,stream")


def test_where_no_compiler_is_what_needs_it_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr("jobs.lab.scenarios.javac", lambda: None)
    kept, left_out = chosen("streams,kip848,share,registry")
    assert ["without streams, share: their programs need a Java compiler, but only a Java runtime is installed"] == (
        left_out
    )
    assert [*SCENARIOS["kip848"].groups, *SCENARIOS["registry"].groups] == kept.groups
    with pytest.raises(UserError, match="streams, share need a Java compiler"):
        chosen("streams,share")


@pytest.mark.parametrize(
    ("scenario", "index"),
    [("kip848", 0), ("streams", 1), ("share", 0), ("registry", 0)],
    ids=["kip848", "streams", "share", "registry"],
)
def test_what_the_members_do_is_what_is_reported(cluster, tmp_path, scenario, index):
    with scene(cluster, tmp_path, scenario, index) as played:
        played.group.start(0)
        played.group.start(1)
        played.until(members=2, events=["joined"])
        played.group.leave(1)
        rows = played.until(members=1, events=["left"])
    [gone] = [row for row in rows["group_events"] if row["kind"] == "left"]
    assert gone["client_id"].startswith(played.group.plan.client_id(1))
    assert "observed" == gone["evidence"]


def test_a_static_streams_member_returns_to_its_tasks(cluster, tmp_path):
    with scene(cluster, tmp_path, "streams", 2) as played:
        played.group.start(0)
        played.group.start(1)
        played.until(members=2, events=["joined"])
        played.group.leave(1)
        wait_until(lambda: not played.group.is_running(1))
        played.group.start(1)
        rows = played.until(members=2, events=["static_returned"])
    [back] = [row for row in rows["group_events"] if row["kind"] == "static_returned"]
    assert back["group_instance_id"].startswith(played.group.plan.client_id(1))
    assert "observed" == back["evidence"]
    assert "session_expired" not in [row["kind"] for row in rows["group_events"]]


def test_a_poll_describes_a_streams_group_with_the_partitions_that_its_members_read(cluster, tmp_path):
    seen: list[dict] = []

    def described() -> dict:
        """Return what the newest poll reported about the group, if it is new."""
        poller._full_at = float("-inf")  # poll everything again now
        seen.append({})
        for each in poller.poll():
            if each["kind"] == "end_offsets":
                seen[-1].setdefault("ends", set()).add(each["topic"])
            elif each["kind"] == "group" and each["group_id"] == name:
                seen[-1]["group"] = each
        return seen[-1].get("group") or {"state": None, "members": []}

    def shares(members: int) -> bool:
        """Return whether this number of members of this test read all messages together."""
        group = described()
        assigned = [tuple(partition) for member in group["members"] for partition in member["assignment"]]
        return (group["state"], len(group["members"]), sorted(assigned)) == ("Stable", members, sorted(read))

    with scene(cluster, tmp_path, "streams", 1) as played:
        name = played.group.plan.group_id
        topics = {"visits", f"{name}-counts-repartition"}
        read = {(topic, partition) for topic in topics for partition in range(4)}
        poller = Poller({"bootstrap.servers": cluster.bootstrap_servers})
        try:
            played.group.start(0)
            wait_until(lambda: shares(1), WITHIN_S)
            played.group.start(1)
            wait_until(lambda: shares(2), WITHIN_S)
        finally:
            poller.close()
    assert {} == poller.errors
    group = seen[-1]["group"]
    assert ("streams", 1) == (group["type"], group["coordinator"])
    assert all(each["client_id"].startswith(f"{name}-") for each in group["members"])
    assert all(0 < each["epoch"] <= group["epoch"] for each in group["members"])
    assert topics <= set().union(*(each.get("ends", set()) for each in seen)), "they are kept around a change"


def test_what_a_killed_worker_ran_is_reported_as_waiting_for_it(cluster, tmp_path):
    with scene(cluster, tmp_path, "connect") as played:
        played.group.start(0)
        played.group.start(1)
        rows = played.until(members=2, events=["joined"], resources=8)
        worker = next(row["member_id"] for row in rows["generation_members"] if row["client_id"].endswith("-1"))
        ran = [row["assigned"] for row in rows["generation_members"] if row["member_id"] == worker][-1]
        played.group.kill(1)
        rows = played.until(members=1, events=["session_expired"])
    last = rows["generations"][-1]["generation_id"]
    lost = {(row["name"], row["index"]) for row in rows["stalls"] if row["generation_id"] == last}
    assert {(each["name"], each["index"]) for each in ran} == lost
    assert 4 == len(lost)
