"""The warehouse of recorded clusters."""

from __future__ import annotations

import pytest

from testing.warehouses import recorded


@pytest.fixture(scope="session")
def clusters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    recorded.write(folder)
    return folder
