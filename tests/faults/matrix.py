"""The result of each trial, as a table at the end of the run; trials may have run in other processes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tests.faults.tables import Difference

PROPERTY = "fault"
HEAD = ("runs", "hit", "identical", "lost", "duplicated", "declared", "s to catch up")

Told = dict[str, int | float]
_matrix: defaultdict[str, list[Told]] = defaultdict(list)


@dataclass(slots=True)
class Trial:
    """One disturbance and its result. `is_hit`: the job was at the intended point when it was disturbed."""

    found: Difference | None = None
    is_hit: bool = False
    seconds: float = 0.0
    declared: int = 0

    def described(self) -> Told:
        found = self.found or Difference(lost=0, duplicated=0, is_identical=False)
        counted = {"identical": int(found.is_identical), "lost": found.lost, "duplicated": found.duplicated}
        return {"hit": int(self.is_hit), "declared": self.declared, "s to catch up": self.seconds} | counted


def pytest_runtest_logreport(report):
    if report.when == "teardown":
        for name, value in report.user_properties:
            if name == PROPERTY:
                point, described = value
                _matrix[point].append(described)


def pytest_terminal_summary(terminalreporter):
    if not _matrix:
        return
    terminalreporter.section("faults")
    width = max(map(len, _matrix))
    terminalreporter.write_line(" | ".join(("point".ljust(width), *HEAD)))
    for point, trials in sorted(_matrix.items()):
        sums = [len(trials), *(sum(described[name] for described in trials) for name in HEAD[1:-1])]
        cells = [*sums, f"{max(described[HEAD[-1]] for described in trials):.0f}"]
        row = (str(cell).rjust(len(name)) for cell, name in zip(cells, HEAD, strict=True))
        terminalreporter.write_line(" | ".join((point.ljust(width), *row)))
