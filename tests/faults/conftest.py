"""The matrix: what each trial found, as a table at the end of the run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from tests.faults.tables import Content, Difference, recorded_content
from tests.jobs.conftest import NAME, recorded  # noqa: F401 - a fixture

MATRIX = pytest.StashKey["dict[str, list[Trial]]"]()


@dataclass(slots=True)
class Trial:
    """One disturbance and what came of it. `is_hit`: the job was where the point says when it was disturbed."""

    found: Difference | None = None
    is_hit: bool = False
    seconds: float = 0.0
    declared: int = field(default=0)


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(max(1, metafunc.config.getoption("--faults"))))


def pytest_configure(config):
    config.stash[MATRIX] = defaultdict(list)


@pytest.fixture
def matrix(request):
    """Put a trial in before it is judged."""

    def take(point: str, trial: Trial) -> Trial:
        request.config.stash[MATRIX][point].append(trial)
        return trial

    return take


@pytest.fixture(scope="session")
def undisturbed() -> Content:
    return recorded_content(NAME)


def pytest_terminal_summary(terminalreporter, config):
    matrix = config.stash[MATRIX]
    if not matrix:
        return
    terminalreporter.section("faults")
    width = max(map(len, matrix))
    head = ("runs", "hit", "identical", "lost", "duplicated", "declared", "s to catch up")
    terminalreporter.write_line(" | ".join(("point".ljust(width), *head)))
    for point, trials in matrix.items():
        done = [trial.found for trial in trials if trial.found]
        cells = (
            len(trials), sum(t.is_hit for t in trials), sum(d.is_identical for d in done), sum(d.lost for d in done),
            sum(d.duplicated for d in done), sum(t.declared for t in trials), f"{max(t.seconds for t in trials):.0f}",
        )  # fmt: skip
        row = (str(cell).rjust(len(name)) for cell, name in zip(cells, head, strict=True))
        terminalreporter.write_line(" | ".join((point.ljust(width), *row)))
