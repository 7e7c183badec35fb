"""A reader who follows a group's history through the calls to silver rarely has to go back to a module."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import groupby
from types import CodeType, FrameType
from typing import Any

import pytest

from jobs.captures.recording import Capture
from pipelines.silver.history import History
from pipelines.silver.rows import silver_rows
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, histories

MOST = 32
"""A group whose members become static calls most modules: those for dynamic and those for static members."""

QUIET_MS = 10_000
NAMES = sorted(path.name for path in CAPTURES.iterdir() if path.is_dir())


def modules_in_order(history: History) -> list[str]:
    """Return the modules of silver in the order of the first call of a function in each."""
    called: dict[CodeType, str] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        # Comprehensions and generated methods have no own position in the text.
        has_place = not code.co_name.startswith("<") and not code.co_filename.startswith("<")
        if event == "call" and has_place and module.startswith("pipelines.silver."):
            called.setdefault(code, module)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        silver_rows(history, QUIET_MS)
    finally:
        sys.setprofile(before)
    return [module for module, _ in groupby(called.values())]


@pytest.mark.parametrize("name", NAMES)
def test_a_classic_group_s_history_enters_few_modules_again(name):
    for history in histories(batches(name), Capture(CAPTURES / name).meta):
        if all(record.kind == "GroupMetadata" for record in history.records):
            entered = Counter(modules_in_order(history))
            again = {module: times - 1 for module, times in entered.items() if times > 1}
            assert sum(again.values()) <= MOST, (history.group_id, again)
