"""Random groups of the consumer protocol: a rebuild from any point at rest gives the same rows."""

from __future__ import annotations

from random import Random

import pytest

from pipelines.silver.rows import silver_rows
from tests.silver.group_records import T1, T2, Body, Script, current, epoch, gone, member, regex, target, target_epoch
from tests.silver.test_determinism import comparable, gone_on_from_each_rest, stands_not

QUIET_MS = 60_000
TOPICS = {T1: "orders", T2: "refunds"}


class Group:
    """A coordinator that distributes partitions evenly, and members that follow at once, late or never."""

    def __init__(self, seed: int) -> None:
        self.random, self.script = Random(seed), Script()
        self.now, self.number, self.made = 1_790_000_000_000, 1, 0
        self.topic = self.random.choice(list(TOPICS))
        self.names_topics = self.random.random() < 0.7
        self.partitions = self.random.randint(1, 12)
        self.members: dict[str, str | None] = {}
        self.assigned: dict[str, tuple[int, ...]] = {}
        self.silent = {p for p in range(self.partitions) if self.random.random() < 0.1}

    def run(self, steps: int) -> Script:
        for _ in range(steps):
            step = self.random.choices(
                [self.joins, self.leaves, self.restarts, self.subscribes, self.commits, self.rests, self.dies],
                [6, 4, 2, 1, 8, 6, 0.2],
            )[0]
            step()
        return self.script

    def joins(self) -> None:
        self.made += 1
        name = f"m{self.made}"
        self.members[name] = f"i{self.made}" if self.random.random() < 0.3 else None
        self.bump(self.seat(name))

    def seat(self, name: str, **more: object) -> Body:
        return member(name, TOPICS[self.topic], instance=self.members[name], **more)

    def leaves(self) -> None:
        if self.members:
            name = self.random.choice(sorted(self.members))
            del self.members[name]
            self.assigned.pop(name, None)
            self.bump(*gone(name))

    def restarts(self) -> None:
        """A static member comes back under another id, in the same epoch."""
        static = sorted(name for name, instance in self.members.items() if instance)
        if not static:
            return
        old = self.random.choice(static)
        self.made += 1
        new = f"m{self.made}"
        self.members[new] = self.members.pop(old)
        mine = self.assigned.pop(old, ())
        self.assigned[new] = mine
        self.tick()
        self.script.at(
            self.now, *gone(old), self.seat(new), target(new, *mine, topic=self.topic),
            current(new, self.number, *mine, topic=self.topic),
        )  # fmt: skip

    def subscribes(self) -> None:
        if self.members:
            name = self.random.choice(sorted(self.members))
            expression = f"o.*{self.random.randint(1, 3)}"
            self.bump(self.seat(name, subscribedTopicRegex=expression), regex(expression, TOPICS[self.topic]))

    def bump(self, *bodies: Body) -> None:
        self.tick()
        self.number += 1
        names = sorted(self.members)
        wanted = {name: tuple(range(at, self.partitions, len(names))) for at, name in enumerate(names)}
        self.script.at(
            self.now, *bodies, epoch(self.number, metadataHash=7),
            *(target(name, *mine, topic=self.topic) for name, mine in wanted.items()), target_epoch(self.number),
        )  # fmt: skip
        for name in sorted(names, key=lambda _: self.random.random()):
            if self.random.random() < 0.05:
                continue
            had, mine = self.assigned.get(name, ()), wanted[name]
            self.tick()
            kept = tuple(p for p in had if p in mine)
            if lost := [p for p in had if p not in mine]:
                self.script.at(self.now, current(name, self.number - 1, *kept, pending=lost, topic=self.topic))
                self.commits(1)
                self.tick()
            self.assigned[name] = mine
            self.script.at(self.now, current(name, self.number, *mine, topic=self.topic))

    def commits(self, rounds: int = 3) -> None:
        for _ in range(rounds):
            self.tick()
            owned = sorted({p for mine in self.assigned.values() for p in mine} - self.silent)
            if owned:
                topic_id = self.topic if self.names_topics else None
                self.script.commit(self.now, *owned, topic=TOPICS[self.topic], topic_id=topic_id)

    def rests(self) -> None:
        self.commits()
        self.now += self.random.choice([QUIET_MS // 2, 2 * QUIET_MS, 3_600_000])
        self.commits()

    def dies(self) -> None:
        for name in sorted(self.members):
            self.tick()
            self.script.at(self.now, *gone(name))
        self.members, self.assigned, self.number = {}, {}, 1
        self.tick()
        self.script.at(self.now, ("ConsumerGroupMetadata", None, None, {}))

    def tick(self) -> None:
        self.now += self.random.choice([1, 40, 700, 5_000])


@pytest.mark.parametrize("seed", range(60))
def test_from_wherever_a_group_was_at_rest_the_rows_are_those_of_a_whole_rebuild(seed) -> None:
    gone_on_from_each_rest(Group(seed).run(60).history(), QUIET_MS)


def test_what_comes_later_changes_no_row_of_before() -> None:
    """A rebuild continues from the rows of an earlier one: its rows are those of the whole history."""
    gone_on = 0
    for seed in range(60):
        history = Group(seed).run(60).history()
        whole = silver_rows(history, QUIET_MS)
        for episode in whole["rebalances"]:
            if episode["base_state"] is None or episode["settled_at"] is None:
                continue
            earlier = silver_rows(Group(seed).run(60).until(episode["settled_at"]), QUIET_MS)
            gone_on += 1
            before = [
                {table: [r for r in found[table] if not stands_not(table, r, episode)] for table in found}
                for found in (whole, earlier)
            ]
            assert comparable(before[0]) == comparable(before[1])
    assert gone_on > 60
