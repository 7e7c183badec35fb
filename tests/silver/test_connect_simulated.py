"""Random lives of a Connect group under a leader that follows KIP-415, against what really ran."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from random import Random
from typing import Any

import pytest

from pipelines.silver.rows import silver_rows
from tests.silver.handmade import history, worker, workers
from tests.silver.test_determinism import comparable, is_after, settled

DELAY_MS = 3_500
Resource = tuple[str, int]


def by_name(resources: set[Resource]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = defaultdict(list)
    for name, index in sorted(resources):
        out[name].append(index)
    return dict(out)


class Simulation:
    """`running` is what each worker really runs; `windows` are (resource, generation it stopped by, resumed in)."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.running: dict[str, set[Resource] | None] = {"w0": None}
        self.configured: set[Resource] = set()
        self.known: set[Resource] = set()
        self.config = self.number = self.at = self.made = 0
        self.deadline: int | None = None
        self.revoked_before = False
        self.missed: str | None = None
        self.stopped: dict[Resource, int] = {}
        self.windows: set[tuple[Resource, int, int | None]] = set()
        self.records: list[Any] = []

    def live(self, steps: int) -> None:
        for step in range(steps):
            # A worker that missed its assignment stays, so that its next record can show that.
            before, left = self.ran(), False if self.missed else self.change()
            self.missed = None
            may_miss = step < steps - 2 and self.random.random() < 0.15
            self.rebalance(before, left=left, may_miss=may_miss)
        self.at += DELAY_MS
        for _ in range(2):  # only now is it known whether the last revoked resource was moved or deleted
            self.rebalance(self.ran(), left=False, may_miss=False)

    def ran(self) -> dict[Resource, str]:
        return {r: name for name, running in self.running.items() for r in running or ()}

    def change(self) -> bool:
        """Let something happen between two generations; return whether a worker left."""
        match self.random.choice(("join", "leave", "add", "add", "delete", "nothing")):
            case "join":
                self.made += 1
                self.running[f"w{self.made}"] = None
            case "leave" if len(self.running) > 1:
                del self.running[self.random.choice(sorted(self.running))]
                return True
            case "add":
                self.made += 1
                self.config += 1
                self.configured |= {(f"c{self.made}", index) for index in (-1, 0, 1)}
            case "delete" if self.configured:
                gone = self.random.choice(sorted(self.configured))[0]
                self.config += 1
                self.configured = {r for r in self.configured if r[0] != gone}
        return False

    def rebalance(self, before: dict[Resource, str], *, left: bool, may_miss: bool) -> None:
        self.number, self.at = self.number + 1, self.at + 1_000
        ran = {name: set(running or ()) for name, running in self.running.items()}
        active = set().union(*ran.values())
        lost = (self.known - active) & self.configured
        created = self.configured - self.known - active
        delay = self._delay(lost, left=left)
        revoked = {name: held - self.configured for name, held in ran.items()}
        if delay == 0 and not self.revoked_before:
            self._balance(ran, revoked)
        self.revoked_before = any(revoked.values())
        given = self._share(ran, revoked, created | (lost if delay == 0 else set()))
        self.records.append(
            workers(
                self.number,
                self.at,
                *(
                    worker(
                        name,
                        ran=None if self.running[name] is None else by_name(held),
                        given=by_name(given[name]),
                        revoked=by_name(revoked[name]),
                        delay=delay,
                        config=self.config,
                    )
                    for name, held in ran.items()
                ),
            )
        )
        if may_miss:
            self.missed = next((n for n in sorted(ran) if given[n] and not revoked[n] and self.running[n]), None)
        for name, held in ran.items():
            self.running[name] = held if name == self.missed else (held - revoked[name]) | given[name]
        self.known = set().union(*((ran[n] - revoked[n]) | given[n] for n in ran)) | (lost if delay else set())
        self._note(before)

    def _delay(self, lost: set[Resource], *, left: bool) -> int:
        if not lost:
            self.deadline = None
        elif self.deadline is None and left:
            self.deadline = self.at + DELAY_MS
        if self.deadline is None or self.at >= self.deadline:
            self.deadline = None
            return 0
        return self.deadline - self.at

    def _balance(self, ran: dict[str, set[Resource]], revoked: dict[str, set[Resource]]) -> None:
        loads = {name: held - revoked[name] for name, held in ran.items()}
        most, least = max(loads, key=lambda n: len(loads[n])), min(loads, key=lambda n: len(loads[n]))
        if len(loads[most]) - len(loads[least]) > 1:
            revoked[most] = revoked[most] | {max(loads[most])}

    def _share(
        self, ran: dict[str, set[Resource]], revoked: dict[str, set[Resource]], work: set[Resource]
    ) -> dict[str, set[Resource]]:
        given: dict[str, set[Resource]] = {name: set() for name in ran}
        for resource in sorted(work):
            least = min(ran, key=lambda n: (len(ran[n] - revoked[n]) + len(given[n]), n))
            given[least].add(resource)
        return given

    def _note(self, before: dict[Resource, str]) -> None:
        """Note each resource without an owner, or with another owner than before: it stopped by this generation."""
        now = self.ran()
        for resource, owner in before.items():
            if resource in self.configured and now.get(resource) != owner:
                self.stopped[resource] = self.number
        for resource in sorted(self.stopped):
            if resource in now:
                self.windows.add((resource, self.stopped.pop(resource), self.number))
            elif resource not in self.configured:
                del self.stopped[resource]

    def finished(self) -> set[tuple[Resource, int, int | None]]:
        return self.windows | {(resource, number, None) for resource, number in self.stopped.items()}


@pytest.mark.parametrize("seed", range(40))
def test_what_stood_still_is_what_nobody_ran(seed) -> None:
    simulated = Simulation(seed)
    simulated.live(40)
    found = silver_rows(history(simulated.records), 10_000)
    described = {((s["name"], s["index"]), s["generation_id"], s["resumed_generation_id"]) for s in found["stalls"]}
    assert described == simulated.finished()
    assert len(found["stalls"]) == len(described)


@pytest.mark.parametrize("seed", range(15))
def test_a_rebuild_from_any_settled_generation_gives_the_same_rows(seed) -> None:
    simulated = Simulation(seed)
    simulated.live(40)
    whole_history = history(simulated.records)
    whole = silver_rows(whole_history, 10)
    offered = {(e["base_log_epoch"], e["base_offset"]) for e in whole["rebalances"]}
    for base, first in settled(whole):
        if base.position not in offered:
            continue
        records = [r for r in whole_history.records if r.position >= base.position]
        expected = {table: [r for r in rows if is_after(table, r, first)] for table, rows in whole.items()}
        later = silver_rows(dataclasses.replace(whole_history, records=records), 10, base)
        assert comparable(expected) == comparable(later)
