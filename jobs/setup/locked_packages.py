"""Reads `uv.lock`, which holds the Python packages for every use of Regroup, with their hashes.

It runs before any package is installed, so it uses only the standard library.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

LOCK = Path(__file__).resolve().parents[2] / "uv.lock"

Package = Mapping[str, Any]
"""One `[[package]]` of the lock."""


class LockedPackages:
    """The packages of one `uv.lock`. A package that is locked twice, for two Python versions, appears twice."""

    def __init__(self, path: Path = LOCK) -> None:
        self._packages: list[Package] = tomllib.loads(path.read_text(encoding="utf-8"))["package"]

    def needed(self) -> list[Package]:
        """Return what `./regroup` installs: all dependencies of `regroup` with the extras `spark` and `otlp`."""
        return list(self._closure([*self._project()["dependencies"], *self._extra("spark"), *self._extra("otlp")]))

    def of_extra(self, name: str) -> list[Package]:
        """Return the direct and indirect dependencies of an extra in `pyproject.toml`."""
        return list(self._closure(self._extra(name)))

    def _extra(self, name: str) -> list[Package]:
        found: list[Package] = self._project()["optional-dependencies"][name]
        return found

    def group(self, name: str) -> list[Package]:
        """Return the direct and indirect dependencies of a dependency group in `pyproject.toml`."""
        return list(self._closure(self._project()["dev-dependencies"][name]))

    def _project(self) -> Package:
        (project,) = (package for package in self._packages if package["name"] == "regroup")
        return project

    def _closure(self, dependencies: Iterable[Mapping[str, Any]]) -> Iterator[Package]:
        seen: set[tuple[str, str, tuple[str, ...]]] = set()
        given: set[tuple[str, str]] = set()
        waiting = list(dependencies)
        while waiting:
            asked = waiting.pop()
            for package in self._matches(asked):
                extras = tuple(asked.get("extra", ()))
                key = (package["name"], package["version"])
                if (*key, extras) in seen:
                    continue
                seen.add((*key, extras))
                waiting += package.get("dependencies", ())
                for extra in extras:
                    waiting += package["optional-dependencies"][extra]
                if key not in given:
                    given.add(key)
                    yield package

    def _matches(self, asked: Mapping[str, Any]) -> Iterator[Package]:
        """Yield the packages of a dependency's name, with its version if the dependency has one."""
        for package in self._packages:
            if package["name"] == asked["name"] and asked.get("version", package["version"]) == package["version"]:
                yield package


def requirement(package: Package) -> str:
    """Return the line of a requirements file with which pip installs this package from its locked files only."""
    files = [*([package["sdist"]] if "sdist" in package else []), *package.get("wheels", ())]
    return " ".join((f"{package['name']}=={package['version']}", *(f"--hash={file['hash']}" for file in files)))
