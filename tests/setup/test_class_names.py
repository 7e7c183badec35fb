"""A class name means one thing in the whole product."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "pipelines", "jobs", "dashboards")


def test_no_two_public_classes_have_the_same_name():
    defined: dict[str, list[str]] = defaultdict(list)
    for path in (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(str(path.relative_to(ROOT)))
    assert {} == {name: places for name, places in defined.items() if len(places) > 1}
