"""No untrusted name mentions people, becomes a link or moves a cursor; and escaping loses no name."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.gold.alerts.escaping import LONGEST, escaped, without_links
from testing.alerts.receiving import unescaped

HOSTILE = [
    "<!channel>",
    "<@U012AB3CD>",
    "<https://evil.example|harmless>",
    "[harmless](https://evil.example)",
    "@here @everyone @channel",
    "\x1b[2J\x1b[31mred\x07",
    "one\ntwo\r\nthree\u2028four",
    "\u202egnp.exe\u200b",
    "<script>alert(1)</script>",
    "`code` %3Cb%3E 100%",
    "\ud800",
    "\x9b31m",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("harmless", [escaped, without_links])
def test_markup_links_and_controls_are_gone(name, harmless):
    text = harmless(name)
    assert not set(text) & set("<>[]`@")
    assert "://" not in text
    assert not {unicodedata.category(c) for c in text} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert text.encode("utf-8")


@pytest.mark.parametrize("name", [*HOSTILE, "orders", "café ☕", "a-b_c.d/e:f"])
def test_an_escaped_name_can_be_had_back(name):
    assert name == unescaped(escaped(name))


@given(st.text(max_size=80))
def test_every_escaped_name_can_be_had_back(name):
    assert name == unescaped(escaped(name))
    assert without_links(escaped(name)) == escaped(name), "once is enough"


def test_ordinary_names_stay_as_they_are():
    assert "payments.orders-v2_eu" == escaped("payments.orders-v2_eu")
    assert "billing@eu-west.internal" == escaped("billing@eu-west.internal")


@pytest.mark.parametrize("name", ["@ops", "x @ops", "x-@ops", "x@here", "x@Everyone", "<@ops>"])
def test_what_may_call_people_is_encoded(name):
    assert "@" not in escaped(name)


def test_longest_names_stay_apart():
    one, other = (escaped("x" * 30_000 + end) for end in "ab")
    assert one != other
    assert len(one) <= LONGEST
