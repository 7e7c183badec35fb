"""Every locked package has a licence that goes with Apache-2.0, the one that it states itself."""

from __future__ import annotations

import json
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from jobs.setup import licences

WORDS = {
    "Apache-2.0": ("Apache",), "BSD-3-Clause": ("BSD",), "BSD-2-Clause": ("BSD",), "MIT": ("MIT",),
    "MPL-2.0": ("MPL",), "ZPL-2.1": ("ZPL",), "PSF-2.0": ("PSF",),
}  # fmt: skip
"""How packages that state no SPDX expression call these."""


def test_the_lists_are_what_the_locks_make_them() -> None:
    found = licences.components()
    described = {
        "licences.md": licences.document(found),
        "sbom.cdx.json": json.dumps(licences.bill(found), indent=1) + "\n",
    }
    for name, text in described.items():
        assert text == (licences.DOCS / name).read_text(encoding="utf-8"), "run: python -m jobs.setup.licences"
        assert "://" not in text


def test_every_licence_goes_with_apache_2_0_and_no_other_is_listed() -> None:
    found = licences.components()
    assert all(licences.terms(component.licence) for component in found)
    declared = tomllib.loads(Path(licences.__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    assert set(declared["python"]) == {c.name for c in found if c.kind == "pypi"}
    jars = {c.name for c in found if c.kind == "maven"}
    assert set(declared["go"]) == {c.name for c in found if c.kind == "golang"}
    assert set(declared["npm"]) == {c.name for c in found if c.kind == "npm"}
    assert set(declared["jars"]) <= jars | {name.partition(":")[0] for name in jars}


@pytest.mark.parametrize("expression", ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "LGPL-2.1-only OR GPL-2.0-only", ""])
def test_a_licence_that_does_not_go_with_it_is_refused(expression) -> None:
    with pytest.raises(ValueError, match=r"is compatible with Apache-2\.0"):
        licences.terms(expression)


def test_of_a_choice_the_licence_that_asks_least_counts() -> None:
    assert licences.terms("EPL-2.0 OR Apache-2.0") == {"Apache-2.0"}
    assert licences.terms("(EPL-2.0 OR GPL-2.0-only) AND MIT") == {"EPL-2.0", "MIT"}


def test_an_installed_package_states_the_licence_that_is_listed() -> None:
    installed = {}
    for component in licences.components():
        try:
            installed[component.name] = (component, metadata.metadata(component.name))
        except metadata.PackageNotFoundError:
            # Of other systems; Python has the last one's module itself from 3.14 on.
            is_elsewhere = component.name in {"brotlicffi", "colorama", "httpx2-jsfetch", "pywin32", "backports-zstd"}
            assert component.used == "lab" or component.kind == "maven" or is_elsewhere, component.name
    assert len(installed) > 50
    for component, declared in installed.values():
        if (expression := declared.get("License-Expression")) is not None:
            assert expression == component.licence, component.name
        else:
            kinds = [c for c in declared.get_all("Classifier") or [] if c.startswith("License ::")]
            printed = " ".join([declared.get("License") or "", *kinds])
            assert any(word in printed for licence in component.licence.split(" AND ") for word in WORDS[licence]), (
                printed
            )


def test_the_bill_names_every_locked_file_once() -> None:
    described = licences.bill(licences.components())["components"]
    assert len({each["bom-ref"] for each in described}) == len(described)
    assert all(each["purl"].startswith(("pkg:pypi/", "pkg:maven/", "pkg:golang/", "pkg:npm/")) for each in described)
    assert all("hashes" in each for each in described if each["purl"].startswith("pkg:maven/"))
