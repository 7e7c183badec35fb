"""A small warehouse of a few tables whose rows keep every rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.quality import Quality
from jobs.tables.tables import FolderTables
from schemas.gold import STORMS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS
from tests.quality.breaking import made


@pytest.fixture
def sound(warehouse: Path) -> Path:
    for table in (GROUPS, GENERATIONS, GENERATION_MEMBERS, STORMS):
        FolderTables(warehouse).append(table, made(table).clean[:2])
    return warehouse


@pytest.fixture
def printed() -> list[str]:
    return []


@pytest.fixture
def quality(sound: Path, printed: list[str]) -> Quality:
    return Quality(tables=FolderTables(sound), say=printed.append, settle_seconds=0)
