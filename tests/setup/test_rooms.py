"""Every module is in a room that says what belongs there, and no room is crowded."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("schemas", "pipelines", "jobs", "dashboards", "testing", "bench", "tests")
MODULES_AT_MOST = 25
MODULES = [path.relative_to(ROOT) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def test_no_folder_has_more_than_25_modules_side_by_side() -> None:
    sizes = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert sizes.total() > 600
    assert {} == {str(folder): count for folder, count in sizes.items() if count > MODULES_AT_MOST}


def test_every_package_says_what_belongs_there() -> None:
    packages = {path.parent for path in MODULES if path.parts[0] != "tests"}
    silent = [
        str(each)
        for each in sorted(packages)
        if not (ROOT / each / "__init__.py").exists()
        or not ast.get_docstring(ast.parse((ROOT / each / "__init__.py").read_text(encoding="utf-8")))
    ]
    assert [] == silent


def test_the_import_contracts_read_every_folder_with_modules() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    folders = {path.parent.name for path in ROOT.glob("*/*.py") if not path.parent.name.startswith(".")}
    assert set(ROOMS) == folders == set(settings["importlinter"]["root_packages"])
    assert set(ROOMS) - {"tests"} == set(settings["mypy"]["packages"])
    assert set(ROOMS) - {"testing", "bench", "tests"} == set(settings["hatch"]["build"]["targets"]["wheel"]["packages"])
