"""The commits around a stop tell whether records were late or read again, or that this is not known."""

from __future__ import annotations

from dashboards.views.resume_position import all_resumed, resumed_from


def stop(last: int | None, first: int | None, resumed: int | None = 1) -> dict:
    return {"last_committed_offset": last, "first_committed_offset": first, "resumed_at_latest": resumed}


def test_commits_that_go_on_are_late_and_nothing_more() -> None:
    assert "no commit went back (2 of 3 partitions known)" in resumed_from(
        [stop(5, 5), stop(5, 90), stop(None, 3)], "partition"
    )


def test_a_commit_behind_the_last_one_is_reported_with_what_was_read_again() -> None:
    printed = resumed_from([stop(1_300, 100), stop(10, 6), stop(5, 9), stop(7, None, None)], "partition")
    assert printed == "2 partitions went back by 1,204 records in all, read again (3 of 3 partitions known)"


def test_without_commits_nothing_is_called_well() -> None:
    assert resumed_from([stop(None, None)], "partition").startswith("not known")
    assert resumed_from([], "task").startswith("not known")


def test_it_is_over_once_all_that_stopped_last_has_committed_again() -> None:
    def of(generation: int, at: int | None) -> dict:
        return {"incarnation": 0, "generation_id": generation, "first_commit_at": at}

    assert all_resumed([of(1, None), of(2, 1_000), of(2, 61_500)], "partition").endswith(
        "All 2 partitions stopped by the last rebalance committed again by 1970-01-01 00:01:01.500 UTC."
    )
    text = all_resumed([of(2, None), of(2, 5), of(1, 9)], "partition")
    assert "Of 2 partitions stopped by the last rebalance, 1 had no commit yet, or none within ten minutes." in text
    assert all_resumed([], "partition") == ""
