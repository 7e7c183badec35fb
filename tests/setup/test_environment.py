"""The promises of the set-up that can be checked without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.config.errors import UserError
from jobs.setup import environment


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a lock and a `.venv` whose Python always succeeds; the only uv reads the lock and installs nothing."""
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "BYTECODE", tmp_path / ".venv" / "bytecode")
    monkeypatch.setattr(environment, "LOCK", tmp_path / "uv.lock")
    stamps = {purpose: tmp_path / ".venv" / stamp.name for purpose, stamp in environment.STAMPS.items()}
    monkeypatch.setattr(environment, "STAMPS", stamps)
    (tmp_path / "uv.lock").write_text("a lock\n")
    for program, text in ((".venv/bin/python", "exit 0"), ("programs/uv", '[ "$1" = export ]')):
        file = tmp_path / program
        file.parent.mkdir(parents=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _: str(tmp_path / "programs" / "uv"))
    monkeypatch.setattr(environment, "java_home", lambda: Path("/a/java"))
    return tmp_path


def test_a_failed_installation_is_reported_and_done_again_at_the_next_start(root):
    for stamp in environment.STAMPS.values():
        stamp.write_text("an older lock\n")
    with pytest.raises(UserError, match=r"could not install the runtime packages of uv\.lock: .* start again"):
        environment.prepare("runtime")
    assert not any(stamp.exists() for stamp in environment.STAMPS.values())


def test_a_finished_set_up_is_stamped_with_its_lock_and_not_repeated(root):
    (root / "programs" / "uv").write_text("#!/bin/sh\n")
    environment.BYTECODE.mkdir()
    environment.prepare("runtime")
    assert not environment.BYTECODE.exists(), "of the packages that were there before"
    assert "a lock\n" == environment.STAMPS["runtime"].read_text()
    assert not environment.STAMPS["development"].exists()
    (root / "programs" / "uv").unlink()
    environment.prepare("runtime")


def test_an_environment_for_development_serves_the_runtime_too_and_not_the_other_way_round(root):
    (root / "programs" / "uv").write_text("#!/bin/sh\n")
    environment.prepare("runtime")
    environment.prepare("development")
    assert [False, True] == [environment.STAMPS[purpose].exists() for purpose in ("runtime", "development")]
    (root / "programs" / "uv").unlink()
    environment.prepare("runtime")


def test_a_folder_that_cannot_be_written_is_named(root, monkeypatch, capsys):
    monkeypatch.setattr(environment, "ROOT", Path("/proc/self"))
    monkeypatch.setattr("sys.argv", ["environment", "runtime"])
    assert 2 == environment.main()
    assert "regroup: /proc/self cannot be written" in capsys.readouterr().err


def test_what_pip_was_given_reaches_uv_unless_uv_was_given_itself():
    described = {"PIP_INDEX_URL": "one", "PIP_FIND_LINKS": "a b", "PIP_CERT": "pip.pem", "SSL_CERT_FILE": "own.pem"}
    assert {**described, "UV_DEFAULT_INDEX": "one", "UV_FIND_LINKS": "a,b"} == environment.uv_environment(described)
