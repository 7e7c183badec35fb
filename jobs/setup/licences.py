"""Licences of all dependencies: `python -m jobs.setup.licences` writes the lists in docs/engineering.

Versions come from `uv.lock`, `jars.lock` and the locks of the lab's members, licences from `licences.toml`, so the
lists are the same on every machine. A package that is locked twice, for two Python versions, is listed twice.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from jobs.setup.jars import ALWAYS, locked
from jobs.setup.lab_packages import lab_packages
from jobs.setup.locked_packages import LockedPackages

DOCS = Path(__file__).resolve().parents[2] / "docs" / "engineering"
FREE = frozenset(
    "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause CC0-1.0 ISC MIT MIT-0 PSF-2.0 ZPL-2.1 Zlib".split()  # noqa: SIM905 - reads best
)
"""Licences that only require their text and notices to be passed on."""
WEAK = frozenset(("CDDL-1.0", "CDDL-1.1", "EPL-2.0", "MPL-2.0"))
"""Licences that also require the distributor to name the package's source; code that uses it keeps its licence."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Component:
    """A dependency. `used` is its purpose; `sha256` is set if the lock names exactly one file."""

    kind: str
    name: str
    version: str
    licence: str
    used: str
    sha256: str = ""

    @property
    def purl(self) -> str:
        return f"pkg:{self.kind}/{self.name.replace(':', '/')}@{self.version}"


def components() -> list[Component]:
    """Return all locked dependencies. Raises `KeyError` if `licences.toml` lacks a licence."""
    licences = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    found = [*_packages(licences["python"]), *_jars(licences["jars"])]
    return sorted([*found, *_of_lab(licences, [(c.kind, c.name, c.version) for c in found])])


def _packages(licences: Mapping[str, str]) -> Iterator[Component]:
    locked_packages = LockedPackages()
    seen: set[tuple[str, str]] = set()
    for packages, used in (
        (locked_packages.needed(), "needed"),
        (locked_packages.group("app"), "Databricks"),
        (locked_packages.of_extra("mcp"), "assistants"),
    ):
        for name, version in ((package["name"], package["version"]) for package in packages):
            if (name, version) not in seen:
                yield Component(kind="pypi", name=name, version=version, licence=licences[name], used=used)
            seen.add((name, version))


def _of_lab(licences: Mapping[str, Mapping[str, str]], known: Sequence[tuple[str, str, str]]) -> Iterator[Component]:
    tables = {"golang": "go", "npm": "npm", "pypi": "python"}
    for kind, name, version in lab_packages():
        if (kind, name, version) not in known:
            yield Component(kind=kind, name=name, version=version, licence=licences[tables[kind]][name], used="lab")


def _jars(licences: Mapping[str, str]) -> Iterator[Component]:
    for table, files in locked().items():
        for coordinate, sha256 in files.items():
            name, _, version = coordinate.rpartition(":")
            licence = licences.get(name) or licences[name.partition(":")[0]]
            used = "needed" if table in ALWAYS else "S3" if table == "s3" else "lab"
            yield Component(kind="maven", name=name, version=version, licence=licence, used=used, sha256=sha256)


def terms(expression: str) -> frozenset[str]:
    """Return the licences of an SPDX expression; of alternatives, the one with the fewest conditions.

    Raises:
        ValueError: a part has no alternative in `FREE` or `WEAK`.
    """
    kept = set()
    for part in expression.split(" AND "):
        choices = part.strip("()").split(" OR ")
        known = [choice for each in (FREE, WEAK) for choice in choices if choice in each]
        if not known:
            raise ValueError(f"No licence in {expression!r} is compatible with Apache-2.0.")
        kept.add(known[0])
    return frozenset(kept)


def document(found: Iterable[Component]) -> str:
    """Return the text of docs/engineering/licences.md."""
    rows = [f"| {c.name} | {c.version} | {c.licence} | {c.used} |" for c in found]
    weak = [f"{c.name} ({', '.join(sorted(terms(c.licence) & WEAK))})" for c in found if terms(c.licence) & WEAK]
    return "\n".join(
        (
            "# Licences",
            "",
            "Written by `python -m jobs.setup.licences` from the lock files and `jobs/setup/licences.toml`; as",
            "CycloneDX: [sbom.cdx.json](sbom.cdx.json). Regroup is under Apache-2.0; its wheel contains none of these.",
            "If you pass on an image that contains them, you pass on their licences and notices with it: they are in",
            "`*.dist-info`, and for jars in `META-INF`. Jars, Go modules and packages marked lab are fetched when a",
            "scenario of the lab first needs them, and jars marked S3 when a job first uses tables there.",
            "",
            "All of these licences are compatible with Apache-2.0. If you pass on these packages, you must name the",
            "place of their source:",
            *wrap(f"{', '.join(weak)}.", 120, break_long_words=False, break_on_hyphens=False),
            "The wheels of numpy and scipy contain libgfortran (GPL-3.0-or-later WITH GCC-exception-3.1) and",
            "libquadmath (LGPL-2.1-or-later), as separate libraries.",
            "",
            "| package | version | licence | used |",
            "|---|---|---|---|",
            *rows,
            "",
        )
    )


def bill(found: Iterable[Component]) -> dict[str, Any]:
    """Return CycloneDX 1.6 without time and serial number, so that the same locks give the same bytes."""
    regroup = {"type": "application", "name": "regroup", "licenses": [{"license": {"id": "Apache-2.0"}}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": regroup},
        "components": [_component_json(component) for component in found],
    }


def _component_json(component: Component) -> dict[str, Any]:
    group, _, name = component.name.rpartition(":")
    entry: dict[str, Any] = {
        "type": "library",
        "bom-ref": component.purl,
        **({"group": group} if group else {}),
        "name": name,
        "version": component.version,
        "scope": "required" if component.used == "needed" else "optional",
        "licenses": [{"expression": component.licence}],
        "purl": component.purl,
    }
    return entry | ({"hashes": [{"alg": "SHA-256", "content": component.sha256}]} if component.sha256 else {})


def main() -> int:
    """Write both files; return the exit code."""
    found = components()
    (DOCS / "licences.md").write_text(document(found), encoding="utf-8")
    (DOCS / "sbom.cdx.json").write_text(json.dumps(bill(found), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
