"""Consumer lag around rebalances: committed offsets compared with the end offsets that the poll kept.

The poll keeps few end offsets except around changes of a group (`end_offsets` in `admin_observations`), so this is
context for a rebalance, not lag monitoring. `offset_commits` has the first and last commits of each run, so between
them only bounds are known.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dashboards.lake.lake import Row
from dashboards.text import instant, span
from dashboards.zone import zone
from schemas.written import count

TopicPartition = tuple[str, int]
"""Topic and partition."""

BEYOND_END_MS = 15_000
"""A commit may be ahead of an end offset that was read shortly before it. An older one is of a recreated topic, or of
a log that lost records, so nobody knows where the group will go on.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """Lag at one poll: uncommitted records in `known` of the `of` partitions that the group commits in the range.

    A partition is not known if the poll lacks its end offset, for example because it has no leader, or if its topic was
    not polled then; before its first commit, and after its offset was deleted; and if its committed offset is not in
    the log any more.
    """

    at: int
    least: int
    most: int
    known: int
    of: int

    def __str__(self) -> str:
        partial = "" if self.known == self.of else f" ({self.known} of {self.of} partitions)"
        return span(f"{self.least:,}", f"{self.most:,}") + partial


def lag_checks(observed: Iterable[Row], commits: Iterable[Row]) -> list[Behind]:
    """Return the lag in order of time, from rows with `observed_at` and `body`, and rows of `offset_commits`."""
    runs = _runs(commits)
    topics = {topic for topic, _ in runs}
    samples: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
    for row in observed:
        topic, ends = _ends(row["body"])
        if topic in topics:
            samples[row["observed_at"]] |= {(topic, int(partition)): end for partition, end in ends.items()}
    found = (_behind(at, ends, runs) for at, ends in sorted(samples.items()))
    return [each for each in found if each is not None]


def lag_sentence(found: Sequence[Behind], start: int, end: int) -> str:
    """Return a summary of the polls from `start` to `end`: the first, the one with the highest lag, and the last."""
    mine = [each for each in found if start <= each.at <= end]
    if not mine:
        return ""
    first, last, worst = mine[0], mine[-1], max(mine, key=lambda each: each.most)
    shown = dict.fromkeys((first, worst, last))
    parts = "; ".join(f"{each} at {instant(each.at)[11:19]}" for each in shown)
    noun = "record" if (first.least, first.most) == (1, 1) else "records"
    return f" Lag ({count(len(mine), 'poll')}): {parts} {zone()}, in {noun}."


def _ends(body: str) -> tuple[str, Mapping[str, int]]:
    observation = json.loads(body)
    return observation["topic"], observation["ends"]


def _runs(commits: Iterable[Row]) -> dict[TopicPartition, list[Row]]:
    runs: dict[TopicPartition, list[Row]] = defaultdict(list)
    for row in commits:
        runs[row["topic"], row["partition"]].append(row)
    for of_partition in runs.values():
        of_partition.sort(key=lambda row: (row["first_commit_at"], row["last_offset"]))
    return runs


def _behind(at: int, ends: Mapping[TopicPartition, int], runs: Mapping[TopicPartition, Sequence[Row]]) -> Behind | None:
    mine = [(partition, end) for partition, end in ends.items() if partition in runs]
    committed = [(end, found) for partition, end in mine if (found := _committed(runs[partition], at, end)) is not None]
    if not committed:
        return None
    return Behind(
        at=at,
        # End offsets and commits are read at different times, and the group may commit in between.
        least=sum(max(0, end - high) for end, (_, high) in committed),
        most=sum(max(0, end - low) for end, (low, _) in committed),
        known=len(committed),
        of=len(runs),
    )


def _committed(runs: Sequence[Row], at: int, end: int) -> tuple[int, int] | None:
    """Return the lowest and highest offset that may have been the last commit at `at`, when the log ended at `end`.

    Return None before the first commit, after a tombstone, and if the log ends before the committed offset.
    """
    number = bisect_right(runs, at, key=lambda row: row["first_commit_at"])
    if not number or runs[number - 1]["is_tombstone"]:
        return None
    run = runs[number - 1]
    if run["last_commit_at"] <= at:
        is_beyond = run["last_committed_offset"] > end and at - run["last_commit_at"] > BEYOND_END_MS
        return None if is_beyond else (run["last_committed_offset"], run["last_committed_offset"])
    before = run["before_last_commit_at"]
    low = run["before_last_committed_offset"] if before is not None and before <= at else run["first_committed_offset"]
    # The group may have gone back within the run.
    return min(low, run["last_committed_offset"]), max(low, run["last_committed_offset"])
