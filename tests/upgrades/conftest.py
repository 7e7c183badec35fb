"""A warehouse that an earlier Regroup wrote (README.md)."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest


@pytest.fixture
def older(warehouse) -> Path:
    with tarfile.open(Path(__file__).parent / "warehouse.tar.xz") as packed:
        packed.extractall(warehouse, filter="data")
    return warehouse
