"""The JVMs of Spark and of a broker start from the class archive, and as usual if it is missing or does not fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.setup.class_archive_file import archive, options
from jobs.setup.java import java


def test_the_jvm_of_a_session_has_mapped_it(spark) -> None:
    if not archive().exists():
        pytest.skip("`./regroup test` makes it, pytest alone does not")
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert str(archive().resolve()) in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


def test_a_broker_has_mapped_it(broker) -> None:
    if not archive("kafka").exists():
        pytest.skip("`./regroup test` makes it, pytest alone does not")
    maps = Path(f"/proc/{broker._process.pid}/maps").read_text(encoding="utf-8")
    assert str(archive("kafka").resolve()) in maps


def test_without_one_nothing_is_asked_of_the_jvm(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert () == options()
    assert () == options("kafka")


def test_one_that_is_none_is_left_alone_without_a_word(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    archive().parent.mkdir()
    archive().write_bytes(b"half of it")
    done = subprocess.run([java(), *options(), "-version"], capture_output=True, text=True, check=True)
    assert "" == done.stdout
    assert "OpenJDK" in done.stderr
    assert "cds" not in done.stderr.lower()
