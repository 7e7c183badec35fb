"""`notify` beside a process that has not created the tables yet: it waits, and with `--once` it says what to do."""

from __future__ import annotations

import threading
from argparse import Namespace

import pytest

from jobs import notify
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from testing import sample


def test_it_waits_for_the_tables_of_another_process(tmp_path, monkeypatch, capsys) -> None:
    waited, ended = threading.Event(), threading.Event()

    def until(_, stopped) -> None:
        ended.set()

    monkeypatch.setattr(notify, "WAIT_S", 0.05)
    monkeypatch.setattr(notify.Notifying, "until", until)
    monkeypatch.setattr(notify, "say", lambda text: waited.set() if text.endswith("Waiting for it.") else None)
    settings = Settings(warehouse=tmp_path / "warehouse", metrics_port=0)
    thread = threading.Thread(target=notify.run, args=[settings, Namespace(once=False)], daemon=True)
    thread.start()
    assert waited.wait(60)
    assert not ended.is_set()
    sample.write(settings.warehouse, sample.everyday(1_795_000_000_000))
    assert ended.wait(60)
    thread.join(60)


def test_with_once_the_missing_table_is_a_sentence(tmp_path) -> None:
    with pytest.raises(UserError, match=r"has no table groups yet: run `regroup build`"):
        notify.run(Settings(warehouse=tmp_path, metrics_port=0), Namespace(once=True))
