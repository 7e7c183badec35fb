"""`uv.lock` fits `pyproject.toml`, pins every file by hash, and exports what pip, uv and the App install."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from ruamel.yaml import YAML

from jobs.setup.environment import EXPORT, PURPOSES, uv_program
from jobs.setup.locked_packages import LOCK, LockedPackages, requirement

ROOT = Path(__file__).parents[2]
LOCKED = tomllib.loads(LOCK.read_text(encoding="utf-8"))
PINNED = re.compile(r"^([a-z0-9.-]+)==([^\s;]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def uv() -> str:
    return uv_program()


def exported(uv: str, *options: str) -> str:
    command = [uv, *EXPORT, *options, "--project", str(ROOT)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def bounds(declared: list[str]) -> dict[str, SpecifierSet]:
    return {each.name: each.specifier for each in map(Requirement, declared)}


def locked_bounds(entries: list[dict[str, str]]) -> dict[str, SpecifierSet]:
    return {each["name"]: SpecifierSet(each.get("specifier", "")) for each in entries}


def test_the_lock_was_made_from_what_the_project_states():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (project,) = [package for package in LOCKED["package"] if package["name"] == "regroup"]
    wanted = declared["project"]
    extras = [each for extra in wanted["optional-dependencies"].values() for each in extra]
    assert bounds([*wanted["dependencies"], *extras]) == locked_bounds(project["metadata"]["requires-dist"])
    groups = {name: bounds(group) for name, group in declared["dependency-groups"].items()}
    assert groups == {name: locked_bounds(group) for name, group in project["metadata"]["requires-dev"].items()}
    assert SpecifierSet(wanted["requires-python"]) == SpecifierSet(LOCKED["requires-python"])
    assert "P7D" == LOCKED["options"]["exclude-newer-span"], "no file younger than a week"


def test_the_script_and_the_setup_take_the_versions_of_python_that_the_project_states():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    for file in ("regroup", "jobs/setup/environment.py"):
        (limits,) = re.findall(r"\(3, (\d+)\) <= sys\.version_info\S* < \(3, (\d+)\)", (ROOT / file).read_text())
        assert ">=3.{},<3.{}".format(*limits) == stated, file


def test_every_file_is_pinned_by_sha256_and_comes_from_the_public_index():
    packages = [package for package in LOCKED["package"] if package["name"] != "regroup"]
    assert 1 == len({package["source"]["registry"] for package in packages})
    for package in packages:
        hashes = re.findall(r"--hash=(\S+)", requirement(package))
        assert hashes, package["name"]
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", each) for each in hashes), package["name"]


@pytest.mark.parametrize("purpose", PURPOSES)
def test_what_is_installed_is_named_by_hash_and_without_an_address_so_that_a_mirror_can_serve_it(uv, purpose):
    text = exported(uv, *PURPOSES[purpose])
    assert "://" not in text
    found = PINNED.findall(text)
    assert all("--hash=sha256:" in each for each in re.split(r"\n(?! )", text.strip()))
    needed = {(package["name"], package["version"]) for package in LockedPackages().needed()}
    assert needed <= set(found) if purpose == "development" else needed == set(found)


def test_the_app_installs_the_export_of_its_group(uv, tmp_path):
    bundle = YAML(typ="safe", pure=True).load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
    export, build = bundle["artifacts"]["regroup"]["build"].split(" && ")
    assert "uv build --wheel" == build
    program, *arguments = export.split()
    assert ("uv", ["--output-file", "requirements.txt"]) == (program, arguments[-2:])
    assert ["requirements.txt"] == bundle["sync"]["include"], "git ignores it, so the bundle has to name it"
    file = tmp_path / "requirements.txt"
    subprocess.run([uv, *arguments[:-1], str(file)], cwd=ROOT, check=True)
    found = set(PINNED.findall(file.read_text(encoding="utf-8")))
    assert {(package["name"], package["version"]) for package in LockedPackages().group("app")} == found


def test_uv_itself_is_locked_for_the_set_up_alone():
    (package,) = LockedPackages().group("setup")
    assert "uv" == package["name"]
    assert requirement(package).startswith(f"uv=={package['version']} --hash=sha256:")
    assert "uv" not in {each["name"] for each in LockedPackages().needed()}
