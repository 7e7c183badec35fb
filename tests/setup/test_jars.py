"""The jar lock: its content, and that only locked jars are ever used. Fetches from a folder, through Ivy."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.config.errors import UserError
from jobs.setup.jars import locked, resolve

COORDINATE = "org.example:thing:1.0"
CONTENT = b"the bytes of a jar"
LOCK = {COORDINATE: hashlib.sha256(CONTENT).hexdigest()}
SETTINGS = """<ivysettings><settings defaultResolver="folder"/><resolvers><filesystem name="folder" m2compatible="true">
<artifact pattern="{folder}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"/>
</filesystem></resolvers></ivysettings>"""


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Publish the jar in a repository that is a folder, and configure Ivy to use it."""
    repository = tmp_path / "repository"
    jar = repository / "org" / "example" / "thing" / "1.0" / "thing-1.0.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(CONTENT)
    settings = tmp_path / "settings.xml"
    settings.write_text(SETTINGS.format(folder=repository))
    monkeypatch.setenv("REGROUP_IVY_SETTINGS", str(settings))
    return jar


def test_every_locked_jar_has_an_exact_coordinate_and_a_sha256():
    for table in locked().values():
        for coordinate, sha256 in table.items():
            assert re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+", coordinate)
            assert re.fullmatch(r"[0-9a-f]{64}", sha256)


def test_the_lock_names_one_version_of_delta_and_one_of_kafka():
    tables = locked()
    assert {"4.4.0"} == {c.split(":")[2] for c in tables["delta"] if c.startswith("io.delta:")}
    assert {"4.4.0"} == {c.split(":")[2] for c in tables["kafka"] if c.startswith("org.apache.kafka:")}


def test_a_fetched_jar_needs_neither_repository_nor_java_afterwards(published, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    first = resolve(LOCK, cache)
    published.unlink()
    monkeypatch.setenv("REGROUP_IVY_SETTINGS", "/nowhere")
    monkeypatch.setattr("jobs.setup.jar_downloads.java", pytest.fail)
    assert [cache / "org.example.thing-1.0.jar"] == first == resolve(LOCK, cache)
    assert CONTENT == first[0].read_bytes()


def test_a_jar_damaged_in_the_cache_is_fetched_again(published, tmp_path):
    [jar] = resolve(LOCK, tmp_path)
    jar.write_bytes(b"damaged")
    assert CONTENT == resolve(LOCK, tmp_path)[0].read_bytes()


def test_a_jar_with_another_hash_is_refused_and_thrown_away(published, tmp_path):
    published.write_bytes(b"not the bytes of the lock")
    with pytest.raises(UserError, match=f"{COORDINATE} has another SHA-256"):
        resolve(LOCK, tmp_path)
    assert [] == list(tmp_path.glob("*.jar"))


def test_a_jar_that_cannot_be_fetched_is_named(published, tmp_path):
    published.unlink()
    with pytest.raises(UserError, match=f"{COORDINATE} cannot be fetched"):
        resolve(LOCK, tmp_path)


def test_a_missing_mirror_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("REGROUP_IVY_SETTINGS", "/nowhere")
    with pytest.raises(UserError, match="REGROUP_IVY_SETTINGS names /nowhere"):
        resolve(LOCK, tmp_path)


def test_two_starts_at_once_both_get_the_jar(published, tmp_path):
    program = (
        f"from pathlib import Path; from jobs.setup.jars import resolve; resolve({LOCK!r}, Path({str(tmp_path)!r}))"
    )
    starts = [subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2]) for _ in range(2)]
    assert [0, 0] == [start.wait() for start in starts]
    assert CONTENT == (tmp_path / "org.example.thing-1.0.jar").read_bytes()
