"""`regroup bench` says what can be measured, and hands a measurement its own arguments."""

from __future__ import annotations

import pytest

from jobs.bench import FOLDER, measurements
from jobs.cli import main


def test_every_measurement_says_in_a_sentence_what_it_measures(capsys) -> None:
    assert 0 == main(["bench"])
    lines = capsys.readouterr().out.splitlines()
    assert list(measurements(FOLDER)) == [line.split()[0] for line in lines]
    assert all(line.endswith((".", "`.", ":")) and len(line.split()) > 4 for line in lines)


def test_what_cannot_be_measured_is_answered_with_what_can(capsys) -> None:
    assert 2 == main(["bench", "speed"])
    assert "no benchmark speed: choose one of alerts, " in capsys.readouterr().err


def test_a_wheel_without_benches_says_where_they_are(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("jobs.bench.FOLDER", tmp_path)
    assert 2 == main(["bench", "pages"])
    assert "from a checkout" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["storm-tables", "storm_tables"])
def test_a_measurement_gets_its_own_arguments(name, capsys) -> None:
    assert 0 == main(["bench", name, "--help"])
    assert f"usage: regroup bench {name} [-h]" in capsys.readouterr().out
