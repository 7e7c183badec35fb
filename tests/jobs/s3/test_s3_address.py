"""One address is the whole warehouse: each command starts on an empty machine, also after a kill within a batch."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs.cli import main
from jobs.states.stored_states import PREFIX
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from schemas.gold import ADVICE, GROUP_HEALTH, GROUP_TABLES
from schemas.records import OFFSETS_TOPIC
from schemas.silver import GENERATIONS, REBALANCES, RESUME_POINTS, SILVER
from testing.waiting import wait_until
from tests.faults.process import Job
from tests.jobs.s3.conftest import BUCKET, commands

ADDRESS = f"s3a://{BUCKET}/whole/warehouse"
TABLES = (COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE)


def rows(place: str, tables=TABLES) -> dict[str, list[str]]:
    """All rows by table. Batches decide how runs of commits are cut, so those are counted by partition."""
    found = {}
    for table in tables:
        names = ["group_id", "topic", "partition", "commits"] if table is OFFSET_COMMITS else list(table.names)
        rows = DeltaTable(f"{place}/{table.name}").to_pyarrow_table(columns=names)
        if table is OFFSET_COMMITS:
            rows = rows.group_by(names[:3]).aggregate([("commits", "sum")])
        found[table.name] = sorted(map(repr, rows.to_pylist()))
    return found


def has_rows(table, where=None) -> bool:
    try:
        return DeltaTable(f"{ADDRESS}/{table.name}").to_pyarrow_table(filters=where).num_rows > 0
    except TableNotFoundError:
        return False


def killed(server, folder: Path, words, begins, ends) -> bool:
    """Run the command on an empty machine, and kill it when the first table has rows; return whether the second had
    none.
    """
    with commands(server, folder) as process:
        process.begin(*words)
        wait_until(lambda: has_rows(begins))
        process.kill()
    return not has_rows(ends)


@pytest.fixture
def local(recorded, tmp_path) -> Path:
    """A folder with the rows that a local `ingest` of the same topics writes."""
    assert 0 == Job("ingest", tmp_path / "local" / "folder", recorded).end()
    return tmp_path / "local" / "folder"


@pytest.fixture
def at(local) -> list[str]:
    return ["--warehouse", ADDRESS, "--config", str(local.parent / "regroup.toml")]


def temporary() -> set[Path]:
    return set(Path(gettempdir()).glob(f"{PREFIX}*"))


def test_each_ingest_continues_where_the_one_before_ended(server, local, at, tmp_path, capsys) -> None:
    before = temporary()
    with commands(server, tmp_path / "process") as process:
        for _ in range(2):
            assert 0 == process.run("ingest", "--once", *at), process.printed
    assert rows(str(local)) == rows(ADDRESS)
    assert before == temporary()
    assert "may still do this work" not in process.printed
    assert 0 == main(["doctor", *at])
    assert f"{ADDRESS}, " in capsys.readouterr().out


@pytest.mark.faults
def test_a_killed_ingest_continues_on_another_machine_with_each_record_once(own_server, local, at, tmp_path) -> None:
    # Each batch writes `coverage` last, so the first one has written some tables and not this one.
    with commands(own_server, tmp_path / "first") as first:
        first.begin("ingest", "--once", *at)
        wait_until(lambda: has_rows(COORDINATOR_RECORDS))
        first.kill()
    assert not has_rows(COVERAGE, [("source", "=", OFFSETS_TOPIC)]), "the kill came after the batch"
    with commands(own_server, tmp_path / "second") as second:
        for _ in range(2):
            assert 0 == second.run("ingest", "--once", *at), second.printed
    assert 1 == second.printed.count("may still do this work")
    assert rows(str(local)) == rows(ADDRESS)


@pytest.mark.faults
def test_killed_builds_and_analyses_continue_on_other_machines_with_the_same_rows(
    own_server, recorded, local, at, tmp_path
) -> None:
    for command in ("build", "analyze"):
        assert 0 == Job(command, local, recorded).end()
    with commands(own_server, tmp_path / "bronze") as process:
        for _ in range(2):
            assert 0 == process.run("ingest", "--once", *at), process.printed

    build, analyze = ("build", "--once", *at), ("analyze", "--once", *at)
    # A batch merges `rebalances` after the other tables of silver, and `resume_points` last.
    assert killed(own_server, tmp_path / "1", build, GENERATIONS, REBALANCES), "the kill came after the other tables"
    killed(own_server, tmp_path / "2", build, REBALANCES, RESUME_POINTS)
    with commands(own_server, tmp_path / "3") as process:
        for _ in range(2):
            assert 0 == process.run(*build), process.printed
    assert rows(str(local), SILVER) == rows(ADDRESS, SILVER)

    killed(own_server, tmp_path / "4", analyze, GROUP_HEALTH, ADVICE)
    with commands(own_server, tmp_path / "5") as process:
        for _ in range(2):
            assert 0 == process.run(*analyze), process.printed
    assert rows(str(local), GROUP_TABLES) == rows(ADDRESS, GROUP_TABLES)
