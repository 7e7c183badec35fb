"""The container's definition, checked without building it, because no container engine runs where the tests run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from jobs.config.settings import Settings
from testing.dockerfile import stages
from tests.setup.test_bundle import ROOT

LINES = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
COPIED = [words[1:-1] for words in map(str.split, LINES) if words[:1] == ["COPY"] and "--from=build" not in words]


def test_what_is_copied_is_there_and_is_not_left_out_of_what_is_sent() -> None:
    sent = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for name in (name for names in COPIED for name in names):
        assert (ROOT / name).exists(), name
        assert f"!{name}" in sent, name


def test_what_is_copied_is_enough_to_start(tmp_path: Path) -> None:
    for name in (name for names in COPIED for name in names):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    asked = [tmp_path / ".venv" / "bin" / "python", "-P", "-m", "jobs.cli", "--help"]
    described = subprocess.run(
        asked, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert "maintain" in described.stdout or "quality" in described.stdout


def commands() -> list[str]:
    """Each instruction on one line."""
    text = "\n".join(line for line in LINES if not line.startswith("#"))
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def final() -> list[str]:
    """The instructions of the last stage."""
    found = commands()
    return found[len(found) - found[::-1].index("FROM ${BASE}") :]


def test_it_does_not_run_as_root_and_its_user_owns_no_code() -> None:
    found = final()
    assert ["USER regroup"] == [line for line in commands() if line.startswith("USER")]
    at = found.index("USER regroup")
    # Files that are added later belong to this user, who could change them.
    assert {"ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"} == {
        line.split()[0] for line in found[at + 1 :]
    }
    assert not [line for line in commands() if line.startswith(("COPY", "ADD")) and "--ch" in line]
    owned = [line for line in commands() if "-o regroup" in line or "chown" in line]
    assert ["/data"] == [line.split("-o regroup ")[1].split()[0] for line in owned]
    assert any("go-w" in line for line in commands()[: -len(found)])


def test_what_installs_stays_in_the_first_stage() -> None:
    installed = " ".join(line for line in final() if line.startswith("RUN"))
    assert not re.search(r"python3-(venv|pip)|gcc|build-essential|curl", installed)
    assert ["COPY --from=build /opt/regroup /opt/regroup"] == [line for line in final() if line.startswith("COPY")]
    prepared = next(line for line in commands() if "./regroup --help" in line)
    for left_out in (".regroup", ".cache/uv"):
        assert left_out in prepared
    assert "jobs.spark.class_archive" in prepared
    assert "compileall" in prepared, "nothing can be written when it runs"


def test_its_entry_is_a_command_with_the_health_of_the_pages() -> None:
    (entry,) = [json.loads(line.partition(" ")[2]) for line in final() if line.startswith("ENTRYPOINT")]
    assert ["-m", "jobs.cli"] == entry[-2:]
    (check,) = [line for line in final() if line.startswith("HEALTHCHECK")]
    assert f"127.0.0.1:{Settings().port}/healthz" in check
    (ports,) = [line.split()[1:] for line in final() if line.startswith("EXPOSE")]
    assert [str(Settings().port), str(Settings().metrics_port)] == ports


def test_the_benchmark_reads_the_same_steps() -> None:
    """`regroup bench image` builds and runs the image from this file."""
    build, image = stages("\n".join(LINES))
    assert ("build", "") == (build.name, image.name)
    assert [line.partition(" ")[0] for line in final()] == [word for word, _ in image.steps]


def test_its_base_is_pinned_by_digest_and_names_no_registry() -> None:
    found = commands()
    assert ["ARG BASE", "FROM ${BASE} AS build", "ARG BASE"] == found[:3], "without a default"
    assert 2 == sum(line.startswith("FROM ${BASE}") for line in found)
    pattern = re.search(r"grep -Eq '([^']+)'", found[3])[1]
    digest = "0123456789abcdef" * 4
    checked = found[3].removeprefix("RUN ")
    for base, is_pinned in (
        (f"debian:bookworm-slim@sha256:{digest}", True),
        ("debian:bookworm-slim", False),
        ("debian:bookworm-slim@sha256:", False),
        (f"debian:bookworm-slim@sha256:{digest[1:]}", False),
        (f"registry.example/debian:bookworm-slim@sha256:{digest}", False),
        ("", False),
    ):
        printed = subprocess.run(
            ["sh", "-c", checked],
            check=False,
            env={"BASE": base, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
        assert is_pinned == (printed.returncode == 0)
        assert is_pinned == bool(re.fullmatch(pattern, base))
        assert is_pinned or 1 == printed.stderr.count("\n")
