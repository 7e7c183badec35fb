"""Identifiers use the vocabulary, one word for one thing; wrapped lines of the docs fit into 120 characters."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "pipelines", "jobs", "dashboards", "bench", "testing")
OLD = {
    *("shake", "shakes", "shaken", "told", "untold", "stated", "said", "beside", "touched", "thinned", "awaited"),
    *("sight", "seat", "seats", "course", "stand", "stands", "standing", "stays", "lives", "looked", "insist"),
    *("rewinds", "dawdled", "pasting", "newcomer", "newcomers", "gathering", "storming", "zones"),
}
"""Words that the vocabulary replaced."""

KEPT = {
    "told_at": "a column",
    "seats": "a key of stored resume points, and a topic of recordings",
}
"""Identifiers and values that contain such a word, and why."""

NAMED_IN_SQL = re.compile(r"\b(?:AS|FROM|JOIN)\s+(\w+)|\)\s+(\w+)\s*$", re.MULTILINE)

LONGEST = 120
ASSETS = ROOT / "dashboards" / "assets"


def words(identifier: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", identifier).lower().split("_"))


def identifiers(source: str) -> set[str]:
    """Return all names in Python source: of classes, functions, arguments, variables and attributes, names in SQL texts,
    and values that could be names, such as keys.
    """
    fields = ("name", "id", "attr", "arg", "asname")
    nodes = list(ast.walk(ast.parse(source)))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    in_sql = {name for text in texts for pair in NAMED_IN_SQL.findall(text) for name in pair if name}
    named = {name for node in nodes for field in fields if isinstance(name := getattr(node, field, None), str)}
    return named | in_sql | {text for text in texts if text.isidentifier()}


def test_no_identifier_has_a_word_that_the_vocabulary_replaced() -> None:
    found = set()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            names = identifiers(file.read_text(encoding="utf-8")) - KEPT.keys()
            found |= {f"{file.relative_to(ROOT)}: {n}" for n in names if words(n) & OLD}
    assert set() == found


def test_no_script_file_id_or_class_has_one_either() -> None:
    scripts = {file.stem: file.read_text(encoding="utf-8") for file in ASSETS.glob("*.js")}
    declared = {
        n for text in scripts.values() for n in re.findall(r"\b(?:function|var)\s+(\w+)|regroup\.(\w+) =", text)
    }
    styled = re.findall(r"[#.]([a-z][\w-]*)", (ASSETS / "regroup.css").read_text(encoding="utf-8"))
    names = {*scripts, *(name for pair in declared for name in pair), *(name.replace("-", "_") for name in styled)}
    assert set() == {name for name in names if words(name) & (OLD | {"still"})}


def test_lines_of_the_docs_that_are_no_table_fit() -> None:
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    long = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST and not line.startswith("|")
    ]
    assert [] == long
