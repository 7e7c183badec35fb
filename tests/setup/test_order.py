"""The slowest modules start first."""

from __future__ import annotations

from pathlib import Path

from tests.slowest import HERE, SECONDS, slowest_first


def test_every_slow_module_exists() -> None:
    assert [] == [name for name in SECONDS if not (HERE / name).is_file()]


def test_the_slowest_module_is_first_and_others_keep_their_order() -> None:
    slow = sorted(SECONDS, key=SECONDS.__getitem__)
    names = ["decode/test_b.py", slow[0], "decode/test_a.py", slow[-1], slow[-1], "elsewhere.py"]
    found = [names[n] for n in slowest_first([HERE / name for name in names[:-1]] + [Path("/elsewhere.py")])]
    assert [slow[-1], slow[-1], slow[0], "decode/test_b.py", "decode/test_a.py", "elsewhere.py"] == found
