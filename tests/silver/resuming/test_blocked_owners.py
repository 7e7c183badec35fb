"""KIP-848: a member that is blocked in poll acknowledges an assignment by heartbeats, but does not resume it."""

from __future__ import annotations

from pipelines.silver.rows import silver_rows
from tests.silver.group_records import Script, current, epoch, gone, member, target, target_epoch
from tests.silver.test_determinism import gone_on_from_each_rest

AWAKE = range(1_000, 30_000, 1_000)


def blocked(*, a_commits: range, b_commits: range = AWAKE) -> Script:
    """A has 0 and B has 1. B leaves at 30 s, so A gets 1 at 31 s; C joins at 35 s, and has 1 from 37 s."""
    script = Script().at(
        0, member("A"), member("B"), epoch(2), target("A", 0), target("B", 1), target_epoch(2), current("A", 2, 0),
        current("B", 2, 1),
    )  # fmt: skip
    for at in AWAKE:
        script.commit(at, *([0] if at in a_commits else []), *([1] if at in b_commits else []))
    script.at(30_000, *gone("B"), epoch(3)).at(31_000, target("A", 0, 1), target_epoch(3), current("A", 3, 0, 1))
    for at in range(32_000, 36_000, 1_000):
        script.commit(at, *([0] if at in a_commits else []))
    script.at(35_900, member("C"), epoch(4), target("A", 0), target("C", 1), target_epoch(4), current("C", 4, state=2))
    script.at(36_000, current("A", 3, 0, pending=(1,))).at(36_500, current("A", 4, 0)).at(37_000, current("C", 4, 1))
    for at in range(38_000, 60_000, 1_000):
        script.commit(at, 0, 1)
    return script


def stops(script: Script) -> list[tuple[str, str | None, int | None]]:
    """Return former owner, next owner and earliest end of each stall of partition 1."""
    found = sorted(script.rows()["stalls"], key=lambda s: s["stopped_by_offset"])
    return [(s["from_member_id"], s["to_member_id"], s["resumed_at_earliest"]) for s in found if s["index"] == 1]


def test_a_silent_owner_that_gives_up_what_it_was_given_without_a_commit_did_not_resume_it() -> None:
    script = blocked(a_commits=range(1_000, 20_001, 1_000))
    assert [("B", "C", 37_000)] == stops(script)
    (stall,) = (s for s in script.rows()["stalls"] if s["index"] == 1)
    assert "inferred" == stall["evidence"]
    assert 37_000 - 30_000 <= (stall["stopped_ms"] or 0) <= 38_000 - 29_000


def test_an_owner_that_commits_for_another_partition_works_on_both() -> None:
    assert [("B", "A", 31_000), ("A", "C", 37_000)] == stops(blocked(a_commits=range(1_000, 36_000, 1_000)))


def test_a_silent_owner_resumes_a_partition_without_records() -> None:
    script = blocked(a_commits=range(1_000, 20_001, 1_000), b_commits=range(1_000, 10_001, 1_000))
    script.line(30_000, "left", "B")
    assert [("B", "A", 31_000), ("A", "C", 37_000)] == stops(script)


def test_no_rebuild_begins_while_it_is_open_whether_an_owner_resumed() -> None:
    script = blocked(a_commits=range(1_000, 20_001, 1_000))
    script.at(60_000, member("D"), epoch(5), target("A", 0), target_epoch(5), current("D", 5))
    history = script.history()
    assert gone_on_from_each_rest(history, 10)
    points = {row["first_generation_id"]: row["base_offset"] for row in silver_rows(history, 10)["rebalances"]}
    assert points[4] is None
    assert points[5] is not None


def test_a_member_that_crashes_in_a_loop_makes_one_stall() -> None:
    script = Script().at(
        0, member("A"), member("B"), epoch(2), target("A", 0), target("B", 1), target_epoch(2), current("A", 2, 0),
        current("B", 2, 1),
    )  # fmt: skip
    for at in AWAKE:
        script.commit(at, 0, 1)
    last, number = "B", 2
    for at, name in ((30_000, "C"), (40_000, "D"), (50_000, "E")):
        script.at(at, *gone(last), epoch(number + 1)).at(at + 100, member(name), epoch(number + 2), target(name, 1),
            target_epoch(number + 2), current(name, number + 2, 1))  # fmt: skip
        last, number = name, number + 2
    for at in range(51_000, 60_000, 1_000):
        script.commit(at, 0, 1)
    assert [("B", "E", 50_100)] == stops(script)
