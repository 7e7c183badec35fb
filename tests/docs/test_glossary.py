"""The glossary: each word once, in order, in one sentence that leads to its explanation; and each kind of evidence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schemas.states import Evidence

DOCS = Path(__file__).parents[2] / "docs"
TERMS = dict(re.findall(r"^## (.+)\n((?:.+\n)+)", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_words_are_in_alphabetical_order_and_include_the_grades() -> None:
    assert list(TERMS) == sorted(TERMS, key=str.lower)
    assert len(TERMS) > 40
    assert {grade.value.capitalize() for grade in Evidence} <= TERMS.keys()


@pytest.mark.parametrize("term", TERMS)
def test_a_word_has_one_sentence_with_one_link(term) -> None:
    """`tests/docs/test_links.py` checks that the link leads to a page and a heading that are there."""
    text = " ".join(TERMS[term].split())
    assert len(re.findall(r"\]\([^)]+\)", text)) == 1
    assert re.search(r"\]\([^)]+\)\)\.$", text)
    assert not re.search(r"[.!?] [A-Z]", text)


def test_every_word_that_a_page_links_is_there() -> None:
    anchors = {term.lower().replace(" ", "-") for term in TERMS}
    linked = {
        anchor
        for page in DOCS.rglob("*.md")
        for anchor in re.findall(r"glossary\.md#([\w-]+)", page.read_text("utf-8"))
    }
    assert linked
    assert linked <= anchors
