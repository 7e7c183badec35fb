"""Every link of a document leads to a file, and to a heading of it, that is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
MODULE = re.compile(r"`(?:T )?((?:schemas|pipelines|jobs|dashboards|testing|bench|tests)/[\w/]+\.py)\b")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)")


def anchors(document: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document) -> None:
    for name, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        target = document.parent / name if name else document
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


def test_every_module_that_a_document_names_is_there() -> None:
    named = {name for document in DOCUMENTS for name in MODULE.findall(document.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert [] == sorted(name for name in named if not (ROOT / name).is_file())


def test_the_index_names_every_document() -> None:
    named = {name for name, _ in LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))}
    folders = {"decisions", "runbooks"} & named
    pages = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert [] == sorted(page for page in pages - named if page.partition("/")[0] not in folders)
