"""The points at which a job is killed, recognized from outside by new files in the warehouse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.config.clusters import Cluster
from schemas.bronze import BRONZE, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS
from schemas.silver import GENERATIONS, REBALANCES, SILVER
from schemas.tables import Table
from tests.faults.process import Job

STREAM = "_checkpoints/ingest/kafka/__consumer_offsets"
BUILD = "_checkpoints/build"

Armed = tuple[Callable[[], bool], Callable[[], bool]]
"""The condition to wait for, and the condition that must hold after the job's end if the point was hit."""
Point = Callable[[Path], Armed]


def has(warehouse: Path, *parts: str) -> bool:
    return warehouse.joinpath(*parts).exists()


def _numbered(folder: Path) -> int:
    return 1 + max((int(file.stem) for file in folder.glob("[0-9]*")), default=-1)


def begun(warehouse: Path, stream: str = STREAM) -> int:
    """Return the number of batches whose offsets are written."""
    return _numbered(warehouse / stream / "offsets")


def done(warehouse: Path, stream: str = STREAM) -> int:
    return _numbered(warehouse / stream / "commits")


def is_open(warehouse: Path) -> bool:
    """A batch of `ingest` is in progress, but not the first one: some rows are written already."""
    return begun(warehouse) > done(warehouse) > 0


def versions(warehouse: Path, table: Table) -> int:
    """Return the number of versions; the first version of a table creates it."""
    newest = max((warehouse / table.name / "_delta_log").glob("[0-9]*.json"), default=None)
    return 1 + int(newest.stem) if newest else 0


def changes(warehouse: Path, table: Table) -> int:
    """Return the number of versions without the one that creates the table."""
    return max(0, versions(warehouse, table) - 1)


def parts(warehouse: Path, table: Table) -> int:
    """Return the number of data files, including those that no version refers to."""
    return sum(1 for _ in (warehouse / table.name).glob("part-*.parquet"))


def grows(count: Callable[[Path], int], was: Callable[[Path], bool] = lambda _: True) -> Point:
    def arm(warehouse: Path) -> Armed:
        before = count(warehouse)
        return lambda: count(warehouse) > before, lambda: was(warehouse)

    return arm


def written(table: Table, was: Callable[[Path], bool]) -> Point:
    return grows(lambda warehouse: changes(warehouse, table), was)


def begins(table: Table) -> Point:
    """The table has data files that no version refers to yet."""

    def arm(warehouse: Path) -> Armed:
        files, before = parts(warehouse, table), versions(warehouse, table)
        return lambda: parts(warehouse, table) > files, lambda: versions(warehouse, table) == before

    return arm


def all_written(warehouse: Path) -> Armed:
    commits, covered = versions(warehouse, OFFSET_COMMITS), versions(warehouse, COVERAGE)
    # The stream of the events topic covers one batch too, sooner or later.
    streams = [file.parents[1].name for file in (warehouse / STREAM).parent.glob("*/commits/0")]
    more = 1 if set(streams) - {Path(STREAM).name} else 2
    return (
        lambda: versions(warehouse, OFFSET_COMMITS) > commits and versions(warehouse, COVERAGE) >= covered + more,
        lambda: is_open(warehouse),
    )


def commits_file(warehouse: Path) -> Armed:
    before = done(warehouse)
    return lambda: done(warehouse) > before, lambda: done(warehouse) == before + 1


BEGINNING: dict[str, Point] = {
    "while tables are made": lambda warehouse: (
        lambda: has(warehouse, COORDINATOR_RECORDS.name, "_delta_log"),
        lambda: not all(versions(warehouse, table) for table in BRONZE),
    ),
    "before the first batch": lambda warehouse: (
        lambda: has(warehouse, STREAM, "regroup.json"),
        lambda: done(warehouse) == 0,
    ),
}
"""Points of `ingest`, in this order, in a warehouse that does not exist yet."""

INGEST: dict[str, Point] = {
    "offsets of a batch written": grows(begun, is_open),
    "data of a table begun, not committed": begins(COORDINATOR_RECORDS),
    "coordinator_records written": written(COORDINATOR_RECORDS, is_open),
    "offset_commits written": written(OFFSET_COMMITS, is_open),
    "all tables written": all_written,
    "commits file written": commits_file,
}


def _is_building(warehouse: Path) -> bool:
    return begun(warehouse, BUILD) > done(warehouse, BUILD)


BUILDING: dict[str, Point] = {
    "build: first silver table written": grows(
        lambda warehouse: sum(changes(warehouse, table) for table in SILVER), _is_building
    ),
    "build: last silver table written": written(REBALANCES, _is_building),
}

MAINTAIN: dict[str, Point] = {
    f"maintain: compacted file of {table.name} {stage}": point
    for table in (COORDINATOR_RECORDS, GENERATIONS)
    for stage, point in (("begun", begins(table)), ("committed", written(table, lambda _: True)))
}
"""In the order in which the job reaches them."""


def killed(
    job: str,
    warehouse: Path,
    cluster: Cluster,
    point: Point,
    *,
    after: int = 1,
    in_steps: bool = False,
    within: Sequence[str] = (),
) -> bool:
    """Start the job, and kill it at the point after this number of batches of `ingest`; return whether it was at the
    point.

    `in_steps` takes half as long again and misses no point that lasts less than a millisecond.
    """
    process = Job(job, warehouse, cluster, within=within)
    process.until(lambda: done(warehouse) >= after)
    comes, was = point(warehouse)
    there = process.until(comes, in_steps=in_steps)
    process.kill()
    return there and was()
