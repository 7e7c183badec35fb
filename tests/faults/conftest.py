"""A trial for each disturbance, and the tables of an undisturbed run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.disk import Disk, unavailable
from tests.faults.matrix import PROPERTY, Trial
from tests.faults.tables import Content, recorded_content
from tests.jobs.conftest import NAME, recorded  # noqa: F401 - a fixture


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(max(1, metafunc.config.getoption("--faults"))))


@pytest.fixture
def matrix(request):
    """Add a trial to the matrix before its result is checked."""
    taken: list[tuple[str, Trial]] = []

    def take(point: str, trial: Trial) -> Trial:
        taken.append((point, trial))
        return trial

    yield take
    request.node.user_properties += [(PROPERTY, (point, trial.described())) for point, trial in taken]


@pytest.fixture(scope="session")
def undisturbed() -> Content:
    return recorded_content(NAME)


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    """A disk that can lose power, mounted at `disk.folder`."""
    if why := unavailable():
        pytest.skip(why)
    with Disk(tmp_path / "disk", tmp_path / "disk.img") as mounted:
        yield mounted
