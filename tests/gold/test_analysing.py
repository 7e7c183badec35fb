"""Parts of the analysis beside batches: some seconds each, with longer rests, and never none at all."""

from __future__ import annotations

import pytest

from jobs.analysing import LEAST, MOST, PART_S, SHARE, following


@pytest.mark.parametrize(
    ("analysed", "took", "most"),
    [(50, PART_S, 50), (50, 2 * PART_S, 25), (50, PART_S / 2, 100), (50, 600.0, LEAST), (500, 1.0, MOST)],
)
def test_a_part_is_what_some_seconds_suffice_for(analysed, took, most) -> None:
    assert following(analysed, 10, took, 60.0)[0] == most


def test_while_groups_wait_it_works_a_share_of_the_time() -> None:
    _, rest = following(50, 10, 15.0, 60.0)
    assert 15.0 / (15.0 + rest) == pytest.approx(SHARE)


@pytest.mark.parametrize(("analysed", "took"), [(0, 0.1), (3, 2.0)])
def test_where_none_waits_it_comes_back_when_it_is_due(analysed, took) -> None:
    assert following(analysed, 0, took, 60.0)[1] == 60.0


def test_after_a_long_last_part_it_rests_as_long_as_after_others() -> None:
    assert following(50, 0, 40.0, 60.0)[1] == following(50, 10, 40.0, 60.0)[1]
