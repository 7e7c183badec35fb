"""Reads the locks of the lab's members of other client libraries: Go modules, npm packages and Python packages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

LAB = Path(__file__).resolve().parents[1] / "lab"
_GO = re.compile(r"^\t(?P<name>\S+) (?P<version>v\S+)", re.MULTILINE)
_PYTHON = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)", re.MULTILINE)


def lab_packages() -> Iterator[tuple[str, str, str]]:
    """Yield the kind (as in a package URL), the name and the version of each locked package."""
    for found in _GO.finditer((LAB / "go" / "go.mod").read_text(encoding="utf-8")):
        yield "golang", found["name"], found["version"]
    lock = json.loads((LAB / "node" / "package-lock.json").read_text(encoding="utf-8"))
    for path, package in lock["packages"].items():
        if path:
            yield "npm", path.rpartition("node_modules/")[2], package["version"]
    for found in _PYTHON.finditer((LAB / "python" / "aiokafka.lock").read_text(encoding="utf-8")):
        yield "pypi", found["name"], found["version"]
