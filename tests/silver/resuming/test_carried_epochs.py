"""KIP-848, 932 and 1071: a group that never rests is rebuilt from any of its points with the rows of a whole rebuild."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.silver.coordinator_assigned import state_points
from pipelines.silver.rows import silver_rows
from tests.silver.group_records import Body, Script, current, epoch, gone, member, target, target_epoch
from tests.silver.resuming.test_carried_points import resumed_from_each
from tests.silver.test_determinism import comparable, gone_on_from_each_rest
from tests.silver.test_quiescent_points import QUIET_MS, Group


@pytest.fixture(autouse=True)
def every_epoch(monkeypatch) -> None:
    monkeypatch.setattr(state_points, "EVERY", 1)


class Restless(Group):
    """Members reach an epoch one by one, while other epochs follow; the assignor may be late."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.wanted: dict[str, tuple[int, ...]] = {}
        self.reached: dict[str, int] = {}
        self.pending: dict[str, tuple[int, ...]] = {}
        self.assigned_epoch = 1
        self.is_late = self.random.random() < 0.3

    def run(self, steps: int) -> Script:
        for _ in range(steps):
            step = self.random.choices(
                [self.joins, self.leaves, self.restarts, self.subscribes, self.commits, self.beats, self.pauses],
                [5, 4, 1, 1, 6, 14, 1],
            )[0]
            step()
            if self.random.random() < 0.02:
                self.now += self.random.choice([QUIET_MS, 700_000])
        return self.script

    def leaves(self) -> None:
        before = set(self.members)
        super().leaves()
        for name in before - set(self.members):
            self.reached.pop(name, None)
            self.pending.pop(name, None)

    def bump(self, *bodies: Body) -> None:
        self.tick()
        self.number += 1
        self.script.at(self.now, *bodies, epoch(self.number, metadataHash=7), *([] if self.is_late else self.dealt()))
        if self.is_late and self.random.random() < 0.7:
            self.tick()
            self.script.at(self.now, *self.dealt())

    def dealt(self) -> list[Body]:
        names, self.assigned_epoch = sorted(self.members), self.number
        self.wanted = {name: tuple(range(at, self.partitions, len(names))) for at, name in enumerate(names)}
        return [
            *(target(name, *mine, topic=self.topic) for name, mine in self.wanted.items()),
            target_epoch(self.number),
        ]

    def beats(self) -> None:
        """One member does its next step: it gives up partitions, confirms that, or gets what nobody has."""
        if not self.members:
            return
        self.tick()
        name = self.random.choice(sorted(self.members))
        had, mine = self.assigned.get(name, ()), self.wanted.get(name, ())
        kept = tuple(p for p in had if p in mine)
        lost = tuple(p for p in had if p not in mine)
        if lost and name not in self.pending:
            self.pending[name], self.assigned[name] = lost, kept
            number = self.reached.get(name, 0)
            self.script.at(self.now, current(name, number, *kept, pending=lost, topic=self.topic))
            return
        self.pending.pop(name, None)
        taken = {
            p for other, theirs in (*self.assigned.items(), *self.pending.items()) if other != name for p in theirs
        }
        free = tuple(p for p in mine if p not in taken)
        self.assigned[name], self.reached[name] = free, self.assigned_epoch
        state = 0 if free == mine else 2
        self.script.at(self.now, current(name, self.assigned_epoch, *free, state=state, topic=self.topic))

    def restarts(self) -> None:
        if not any(self.pending.get(name) for name in self.members):
            super().restarts()

    def pauses(self) -> None:
        """A static member leaves for now, and comes back under another id or is removed later."""
        static = sorted(name for name, instance in self.members.items() if instance and name in self.assigned)
        if static and not self.pending.get(static[0]):
            self.tick()
            self.script.at(self.now, current(static[0], -2, *self.assigned[static[0]], topic=self.topic))


def as_share(script: Script) -> Script:
    """Return the same life of a share group, whose members own nothing."""
    script.records = [r for r in script.records if r["record_kind"] != "ConsumerGroupRegularExpression"]
    for record in script.records:
        record["record_kind"] = record["record_kind"].replace("Consumer", "Share")
    return script


def as_streams(script: Script) -> Script:
    """Return the same life of a Streams group, with a task for each partition, which reads from two topics."""
    out = Script().at(script.records[0]["record_at"], topology("refunds", "orders"))
    out.runs, out.records[0]["source_offset"] = script.runs, 0
    for record in script.records:
        value, kind = record["body"]["value"], record["record_kind"].removeprefix("ConsumerGroup")
        if kind == "RegularExpression":
            continue
        if value is not None:
            record["body"]["value"] = _of_streams(kind, value)
        out.records.append(record | {"record_kind": f"StreamsGroup{kind}"})
    return out


def _of_streams(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    match kind:
        case "Metadata":
            return value | {"validatedTopologyEpoch": 0}
        case "TargetAssignmentMember":
            mine = _tasks(value["topicPartitions"])
            return {"activeTasks": mine, "standbyTasks": _tasks([{"partitions": [0]}]), "warmupTasks": []}
        case "CurrentMemberAssignment":
            return {
                "memberEpoch": value["memberEpoch"],
                "state": value["state"] + 1,
                "activeTasks": _tasks(value["assignedPartitions"]),
                "activeTasksPendingRevocation": _tasks(value["partitionsPendingRevocation"]),
            }
    return value


def _tasks(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"subtopologyId": "0", "partitions": each["partitions"]} for each in listed]


def topology(*topics: str) -> Body:
    part = {"subtopologyId": "0", "sourceTopics": list(topics), "repartitionSourceTopics": []}
    return "StreamsGroupTopology", None, {"epoch": 0, "subtopologies": [part]}, {}


def life(kind: str, seed: int) -> Script:
    script = Restless(seed).run(120)
    match kind:
        case "share":
            return as_share(script)
        case "streams":
            return as_streams(script)
    return script


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_random_groups(kind, seed) -> None:
    history = life(kind, seed).history()
    resumed_from_each(history, QUIET_MS)
    gone_on_from_each_rest(history, 2_000)


@pytest.mark.parametrize(("kind", "share"), [("consumer", 0.4), ("share", 0.4), ("streams", 0.1)])
def test_many_epochs_of_them_have_a_point(kind, share) -> None:
    found = [silver_rows(life(kind, seed).history(), QUIET_MS) for seed in range(10)]
    assert sum(len(rows["resume_points"]) for rows in found) > share * sum(len(rows["generations"]) for rows in found)


@pytest.mark.parametrize("seed", range(20))
def test_what_comes_later_changes_no_settled_point(seed) -> None:
    script = Restless(seed).run(120)
    whole = silver_rows(script.history(), QUIET_MS)
    for nth in range(200, len(script.records), 97):
        until = script.records[nth]["record_at"]
        earlier = silver_rows(script.until(until), QUIET_MS)
        settled = [p for p in earlier["resume_points"] if p["settled_at"] < until]
        numbers = {(p["incarnation"], p["first_generation_id"]) for p in settled}
        same = [p for p in whole["resume_points"] if (p["incarnation"], p["first_generation_id"]) in numbers]
        assert comparable({"resume_points": settled}) == comparable({"resume_points": same})


def test_a_member_that_has_not_reached_an_epoch_leaves_no_point() -> None:
    script = Script().at(0, member("A"), epoch(2), target("A", 0), target_epoch(2), current("A", 2, 0))
    script.at(1_000, member("B"), epoch(3), target("B"), target_epoch(3), current("B", 3))
    script.at(2_000, *gone("B"), epoch(4), target_epoch(4))
    script.at(3_000, member("C"), epoch(5), target("C"), target_epoch(5), current("C", 5))
    assert [] == points(script)
    script.at(4_000, current("A", 5, 0))
    assert [3, 4] == points(script)


def points(script: Script) -> list[int]:
    return [row["first_generation_id"] for row in silver_rows(script.history(), QUIET_MS)["resume_points"]]
