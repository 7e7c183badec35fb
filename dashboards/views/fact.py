"""A named value of a page or of a document, with how it is known."""

from __future__ import annotations

from typing import NamedTuple

PROOF = "Proof"
"""Name of the fact that holds the place of a record."""


class Fact(NamedTuple):
    """A name and its value as text. `evidence` is how the value is known, if a grade belongs to it."""

    name: str
    text: str
    evidence: str | None = None
