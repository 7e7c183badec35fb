"""Which Java is chosen, and the message if none fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.config.errors import UserError
from jobs.setup import java

ALL_MODULES = "java.base jdk.incubator.vector"


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """A machine whose Javas are only those a test installs below `tmp_path`."""
    java.java_home.cache_clear()
    monkeypatch.setattr(java, "INSTALL_FOLDERS", (f"{tmp_path}/jvm/*",))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    yield
    java.java_home.cache_clear()


def install(home: Path, version: str, modules: str = ALL_MODULES) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'IMPLEMENTOR="Any"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


def test_no_java_is_shown_with_what_to_install():
    with pytest.raises(UserError, match="Java 17 or 21: install one"):
        java.java_home()


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.8"])
def test_java_17_and_21_are_taken(tmp_path, version):
    home = install(tmp_path / "jvm" / "any", version)
    assert home / "bin" / "java" == java.java()


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "25.0.1"])
def test_another_java_is_refused_by_name(tmp_path, version):
    home = install(tmp_path / "jvm" / "any", version)
    with pytest.raises(UserError, match=rf"found: {home} is Java {version.split('.')[0]}\b"):
        java.java_home()


def test_java_home_goes_before_the_installed_ones(tmp_path, monkeypatch):
    install(tmp_path / "jvm" / "installed", "17")
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "own", "21")))
    assert tmp_path / "own" == java.java_home()


def test_an_unfit_java_home_does_not_hide_a_fitting_one(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "own", "25")))
    assert install(tmp_path / "jvm" / "installed", "17") == java.java_home()


def test_a_trimmed_java_is_refused(tmp_path):
    install(tmp_path / "jvm" / "trimmed", "17", modules="java.base")
    with pytest.raises(UserError, match=r"trimmed Java 17 without jdk\.incubator\.vector"):
        java.java_home()


def test_the_compiler_is_that_of_a_fitting_java_which_has_one(tmp_path):
    assert None is java.javac()
    install(tmp_path / "jvm" / "1-runtime", "17")
    (install(tmp_path / "jvm" / "2-other", "25") / "bin" / "javac").touch(mode=0o755)
    assert None is java.javac()
    complete = install(tmp_path / "jvm" / "3-complete", "21") / "bin" / "javac"
    complete.touch(mode=0o755)
    assert complete == java.javac()
