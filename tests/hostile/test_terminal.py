"""No control or direction character of untrusted text reaches a terminal or a log file, whoever prints it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from jobs import cli
from jobs.config.errors import UserError, one_line
from jobs.config.terminal import say
from jobs.processes.runs import Runs
from jobs.tables.tables import FolderTables
from schemas.visible import VisibleStream, visible_text

ROOT = Path(__file__).parents[2]
EVIL = "\x1b]0;title\x07\x1b[31m\r\u202egroup\u2028\x9b2J\ud800"
SIGNS = "␛]0;title␇␛[31m␍⟨202E⟩group⟨2028⟩⟨9B⟩2J⟨D800⟩"


def hidden(text: str) -> set[str]:
    return {c for c in text if not c.isprintable()} - {"\n", "\t"}


def test_every_hidden_character_has_a_sign() -> None:
    assert SIGNS == visible_text(EVIL)
    assert not hidden(visible_text("".join(map(chr, range(sys.maxunicode)))).translate(dict.fromkeys(UNASSIGNED)))


UNASSIGNED = [code for code in range(sys.maxunicode) if not chr(code).isprintable() and code >= 0xA0]
"""Unprintable for Python, but visible: unassigned and private characters, and wide spaces."""


@pytest.mark.parametrize("how", ["said", "raised", "an unknown argument", "an unexpected failure", "by a library"])
def test_a_command_prints_signs_instead(monkeypatch, capsys, how) -> None:
    def command(*_) -> int:
        if how == "raised":
            raise UserError(f"There is no group {EVIL}\nregroup doctor: everything is fine.")
        if how == "an unexpected failure":
            raise KeyError(EVIL)
        if how == "by a library":
            sys.stderr.write(f"warning: {EVIL}\n")
        say(EVIL)
        return 0

    monkeypatch.setattr(cli, "_command", lambda _: command)
    with suppress(SystemExit, KeyError):
        cli.main(["doctor", *([EVIL] if how == "an unknown argument" else [])])
    printed = capsys.readouterr()
    assert not hidden(printed.out + printed.err)
    if how == "raised":
        assert f"regroup doctor: There is no group {SIGNS}␊regroup doctor: everything is fine.\n" == printed.err
    if how in ("said", "by a library"):
        assert f"{SIGNS}\n" == printed.out


def test_a_process_prints_signs_instead_in_its_traceback_too() -> None:
    program = (
        f"from jobs import cli\ndef fail(*_): raise OSError({EVIL!r})\ncli._command = lambda _: fail\ncli.program()\n"
    )
    command = [sys.executable, "-P", "-c", program, "doctor"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert 1 == ended.returncode
    assert "Traceback" in ended.stderr
    assert SIGNS in ended.stderr
    assert not hidden(ended.stdout + ended.stderr)


def test_a_stream_that_cannot_encode_a_sign_gets_an_escape_sequence() -> None:
    raw = io.BytesIO()
    stream = VisibleStream(io.TextIOWrapper(raw, "ascii"))
    stream.write("\x1bé\n")
    stream.flush()
    assert b"\\u241b\\xe9\n" == raw.getvalue()


def test_the_error_of_a_run_is_kept_with_signs(tmp_path) -> None:
    runs = Runs(tables=FolderTables(tmp_path), job="ingest", say=say)
    assert SIGNS == runs._sentence(UserError(EVIL))
    assert SIGNS == one_line(UserError(EVIL))


def test_spark_logs_signs_instead(spark, tmp_path) -> None:
    pattern = next(
        line.split(" = ", 1)[1]
        for line in (ROOT / "jobs" / "spark" / "log4j2.properties").read_text().splitlines()
        if line.startswith("appender.console.layout.pattern")
    )
    jvm = spark.sparkContext._jvm
    core, log4j = jvm.org.apache.logging.log4j.core, jvm.org.apache.logging.log4j
    parsed = jvm.java.util.Properties()
    parsed.load(jvm.java.io.StringReader(f"p = {pattern}"))
    layout = core.layout.PatternLayout.newBuilder().withPattern(parsed.getProperty("p")).build()
    event = core.impl.Log4jLogEvent.newBuilder().setLoggerName("a").setLevel(log4j.Level.ERROR)
    message = log4j.message.SimpleMessage("evil \x1b[31m \u202e\nnext")
    printed = layout.toSerializable(event.setMessage(message).setTimeMillis(0).build())
    assert printed.endswith("ERROR a: evil \ufffd[31m \ufffd\nnext\n")
