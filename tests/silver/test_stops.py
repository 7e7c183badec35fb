"""What the last commits of a member prove about the time of its stop."""

from __future__ import annotations

from pipelines.silver.history import CommitSegment, Point
from pipelines.silver.stops.commit_activity import work_of


def segment(*commits: tuple[int, int]) -> CommitSegment:
    """Return the commits of one partition, given as (time, offset), as runs keep them."""
    points = [Point((0, at), at, committed) for at, committed in commits]
    is_repeated = len(points) > 2 and points[-1].committed == points[-2].committed
    return CommitSegment(
        first=points[0],
        third_last=points[-3] if is_repeated else None,
        before_last=points[-2] if len(points) > 1 else None,
        last=points[-1],
    )


def test_a_commit_with_progress_proves_work_until_the_one_before_it():
    done = work_of([segment((1_000, 10), (2_000, 20), (2_400, 24))], since=0)
    assert (2_000, 2_400) == (done.working_at, done.stopped)


def test_a_client_that_commits_during_its_callback_and_again_on_closing_was_surely_at_work_only_before_both():
    """librdkafka: stopped at 2,100, its timer commits at 3,000, closing commits the same again at 3,100."""
    done = work_of([segment((1_000, 100), (2_000, 200), (3_000, 210), (3_100, 210))], since=0)
    assert (2_000, 2_100) == (done.working_at, done.stopped)
    assert done.has_late_commit


def test_partitions_without_traffic_do_not_hide_the_repetition():
    idle, busy = ((1_000, 5), (3_100, 5)), ((1_000, 100), (2_000, 200), (3_000, 210), (3_100, 210))
    done = work_of([segment(*idle), segment(*busy)], since=0)
    assert (2_000, 2_100) == (done.working_at, done.stopped)


def test_a_client_without_traffic_that_commits_all_the_same_is_at_work_with_every_commit():
    """Java commits its positions by the clock, progress or not."""
    done = work_of([segment((1_000, 7), (6_000, 7), (11_000, 7), (12_000, 7))], since=0)
    assert (11_000, 12_000) == (done.working_at, done.last)
