"""How foreign text and numbers are shown."""

from __future__ import annotations

import doctest
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards import text
from schemas import written


@given(st.text())
def test_figure_text_holds_nothing_that_plotly_would_read(foreign):
    shown = text.figure_text(foreign)
    assert not set(shown) & set("<>$\n\r\0")
    assert "" == re.sub(r"&(amp|lt|gt|#36);", "", shown).count("&") * "&"


@given(st.text(), st.integers(4, 60))
def test_visible_text_is_one_line_of_at_most_the_limit_without_hidden_characters(foreign, limit):
    shown = text.visible(foreign, limit)
    assert len(shown) <= max(limit, len("(empty)"))
    assert not any(c in "\u202e\u200b\u2028\x00\x1b\x7f" for c in shown)


def test_a_direction_override_is_shown_by_its_number():
    assert "a⟨202E⟩b" == text.visible("a\u202eb")


def test_a_long_id_keeps_its_end():
    assert "aaaaaa…bbb" == text.shorten("a" * 40 + "bbb", 10)


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(None, "\N{EN DASH}"), (0, "0 ms"), (999, "999 ms"), (12_400, "12.4 s"), (192_000, "3 min 12 s"),
     (7_500_000, "2 h 5 min"), (360_000_000, "4 d 4 h"), (99_960, "1 min 40 s")],
)  # fmt: skip
def test_durations_read_as_people_write_them(ms, expected):
    assert expected == text.duration(ms)


def test_a_bounded_amount_shows_its_bounds_only_where_they_differ():
    assert "≈ 61.0 (58.0\N{EN DASH}66.0)" == text.bounded(61, 58, 66)
    assert "61.0" == text.bounded(61, 61, 61)


@pytest.mark.parametrize(
    ("member", "instance", "client", "expected"),
    [
        ("app-1-5f0c2f9a-7d1c-4b44-a4a5-d8a2f4f1c001", None, "app-1", "app-1·5f0c"),
        ("app-1-5f0c2f9a-7d1c-4b44-a4a5-d8a2f4f1c001", None, None, "app-1·5f0c"),
        ("p-0-5f0c2f9a-7d1c-4b44-a4a5-d8a2f4f1c001", "p-0", "app", "p-0"),
        ("x", None, None, "x"),
    ],
)
def test_a_member_goes_by_its_instance_or_its_client(member, instance, client, expected):
    assert expected == text.member_label(member, instance, client)


def test_the_examples_of_how_figures_are_written_are_true():
    assert 0 == doctest.testmod(written).failed


def test_a_negative_figure_has_a_real_minus_sign():
    assert ("\N{MINUS SIGN}3.0", "\N{MINUS SIGN}2.5 s") == (written.amount(-3), written.duration(-2_500))
    assert ("+3.0", "0") == (written.signed(3), written.signed(0))
