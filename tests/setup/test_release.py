"""A release: the same commit gives the same bytes anywhere; its files describe themselves and contain nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from jobs.config.errors import UserError
from jobs.installation.release import notes

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> str:
    environment = {
        **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@test",
        "GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@test",
    }  # fmt: skip
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def commit(tmp_path_factory) -> Path:
    """A repository whose only commit has the files of this one, also those that are not committed yet."""
    folder = tmp_path_factory.mktemp("commit")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
            target.chmod((ROOT / name).stat().st_mode)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "All")
    return folder


def released(clone: Path, out: Path, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "jobs.installation.release", "--out", out],
        cwd=clone, env={**os.environ, "PYTHONPATH": str(clone)}, capture_output=True, text=True, check=False, umask=umask,
    )  # fmt: skip


@pytest.fixture(scope="module")
def two(commit, tmp_path_factory) -> tuple[Path, Path]:
    """The files of two releases of one commit, from clones at other places with other permissions."""
    folder = tmp_path_factory.mktemp("releases")
    for name, umask in (("first", 0o022), ("a longer name/second", 0o077)):
        clone = folder / name / "clone"
        clone.parent.mkdir(parents=True)
        old = os.umask(umask)
        try:
            git(folder, "clone", "-q", str(commit), str(clone))
        finally:
            os.umask(old)
        done = released(clone, folder / name / "out", umask)
        assert 0 == done.returncode, done.stderr
    return folder / "first" / "out", folder / "a longer name/second" / "out"


def test_two_builds_of_a_commit_are_equal_byte_by_byte(two) -> None:
    first, second = ({file.name: file.read_bytes() for file in out.iterdir()} for out in two)
    assert first.keys() == second.keys()
    assert not [name for name in first if first[name] != second[name]]
    assert 6 == len(first)


def test_the_sums_and_the_provenance_name_the_files(two, commit) -> None:
    out, _ = two
    lines = (out / "SHA256SUMS").read_text().splitlines()
    assert {
        f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}" for f in out.iterdir() if f.name != "SHA256SUMS"
    } == set(lines)
    (file,) = out.glob("*.intoto.json")
    statement = json.loads(file.read_text())
    assert ("https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1") == (
        statement["_type"], statement["predicateType"]
    )  # fmt: skip
    for subject in statement["subject"]:
        assert hashlib.sha256((out / subject["name"]).read_bytes()).hexdigest() == subject["digest"]["sha256"]
    assert {".whl", ".gz"} == {Path(subject["name"]).suffix for subject in statement["subject"]}
    source, lock = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert git(commit, "rev-parse", "HEAD") == source["digest"]["gitCommit"]
    assert hashlib.sha256((commit / "uv.lock").read_bytes()).hexdigest() == lock["digest"]["sha256"]
    (sbom,) = out.glob("*.cdx.json")
    assert "CycloneDX" == json.loads(sbom.read_text())["bomFormat"]


def test_the_wheel_and_the_archive_say_which_commit_they_are_of(two, commit) -> None:
    (wheel,), (archive,) = two[0].glob("*.whl"), two[0].glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        recorded = json.loads(opened.read("jobs/installation/build.json"))
        names = opened.namelist()
    assert (git(commit, "rev-parse", "HEAD"), False) == (recorded["commit"], recorded["is_modified"])
    with tarfile.open(archive) as opened:
        inside = opened.getnames()
        assert any(name.endswith("/jobs/installation/build.json") for name in inside)
    for name in (*names, *inside):
        assert not {".git", ".venv", ".regroup", "__pycache__"} & set(Path(name).parts), name


def test_a_change_that_is_not_committed_stops_the_release(commit, tmp_path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(commit), str(clone))
    (clone / "README.md").write_text("changed")
    done = released(clone, tmp_path / "out")
    assert (2, "release: The checkout has changes: commit them first, because a release is made from a commit.") == (
        done.returncode, done.stderr.strip()
    )  # fmt: skip
    assert not (tmp_path / "out").exists()
    git(clone, "checkout", "README.md")
    (clone / "left over.py").write_text("")
    assert 2 == released(clone, tmp_path / "out").returncode, "a build would contain it"


def test_the_notes_are_the_section_of_the_version() -> None:
    text = "# Changelog\n\n## 0.3.0 (unreleased)\n\n- new\n\n## 0.2.0 (2026-12-01)\n\n### A\n\n- old\n\n## 0.1.0 (2026)\n\n- first\n"
    assert "# Regroup 0.2.0 (2026-12-01)\n\n### A\n\n- old\n" == notes(text, "0.2.0")
    assert "- first\n" == notes(text, "0.1.0")[-8:]
    with pytest.raises(UserError, match=r"section of version 0\.3\.0 in CHANGELOG\.md is unreleased"):
        notes(text, "0.3.0")
    with pytest.raises(UserError, match=r"no section of version 0\.20\.0"):
        notes(text, "0.20.0")
