"""Jobs write the tables of a recorded cluster to a real S3 server: the rows, the pages, and no secret anywhere."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from deltalake import DeltaTable
from pyarrow.fs import FileSelector

from dashboards.lake.address import ObjectStore
from dashboards.lake.lake import TABLES as OF_PAGES
from dashboards.lake.lake import LocalLake
from jobs.cli import main
from schemas.bronze import BRONZE
from schemas.gold import ALERTS, GOLD
from schemas.operations import JOB_RUNS, QUALITY_RESULTS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from testing.object_store import object_store
from testing.recordings import CAPTURES
from tests.faults.process import Job
from tests.jobs.s3.conftest import ADDRESS, BUCKET, commands

TABLES = tuple(t for t in (*SILVER, *REASSIGNMENT_TABLES, *GOLD) if t is not ALERTS)
GROUP = "imports-joiner"
STORE = ObjectStore("s3", BUCKET, "of/jobs")


class Replayed(NamedTuple):
    folder: Path
    """A warehouse whose tables `replay` wrote without Spark."""
    states: Path
    """The folder beside the tables in S3."""
    printed: str


@pytest.fixture(scope="module")
def replayed(server, tmp_path_factory) -> Replayed:
    base = tmp_path_factory.mktemp("s3")
    capture, folder, states = str(CAPTURES / "storms"), base / "folder", base / "states"
    assert main(["replay", capture, "--warehouse", str(folder)]) == 0
    with commands(server, base / "process") as process:
        code = process.run("replay", capture, "--warehouse", str(states), "--tables", ADDRESS)
        assert code == 0, process.printed
    return Replayed(folder, states, process.printed)


def rows(place: str, tables=TABLES) -> dict[str, list[str]]:
    """Return all rows by table, independent of the order in the files."""
    found = {t.name: DeltaTable(f"{place}/{t.name}").to_pyarrow_table(columns=list(t.names)) for t in tables}
    return {name: sorted(map(repr, table.to_pylist())) for name, table in found.items()}


def test_every_row_is_that_of_a_folder(replayed) -> None:
    expected, found = rows(str(replayed.folder)), rows(str(STORE))
    assert [] == [name for name in expected if expected[name] != found[name]]
    assert expected["verdicts"]
    assert expected["storms"]
    assert not list(replayed.states.glob("*/_delta_log"))


def test_pages_read_what_the_jobs_wrote(replayed) -> None:
    there, here = LocalLake(STORE), LocalLake(replayed.folder)
    batches = {t.name for t in (*BRONZE, JOB_RUNS, QUALITY_RESULTS)}
    shared = sorted({t.name for t in OF_PAGES} & here.versions().keys() & there.versions().keys())
    assert {"rebalances", "groups", "verdicts", "job_runs"} <= set(shared)
    for name in shared:
        question = (f"SELECT * FROM {name} LIMIT $cap", (name,), 10_000, {})
        local, remote = (sorted(map(repr, lake.query(*question).rows)) for lake in (here, there))
        assert name in batches or local == remote, name


def test_answers_read_the_address(replayed, capsys) -> None:
    printed = []
    for place in (ADDRESS, str(replayed.folder)):
        assert 0 == main(["top", "--warehouse", place, "--last", "all"])
        # The lines before the table say how old the newest record is now.
        printed.append(capsys.readouterr().out.partition("\nGroup ")[2])
    assert printed[0] == printed[1] != ""


def test_no_secret_is_stored_or_printed(server, replayed) -> None:
    secrets = (server.key, server.secret)
    assert not any(secret in replayed.printed for secret in secrets)
    objects = [f for f in server.files.get_file_info(FileSelector(BUCKET, recursive=True)) if f.is_file]
    assert len(objects) > 50
    stored = [server.files.open_input_stream(each.path).read() for each in objects]
    stored += [each.read_bytes() for each in replayed.states.rglob("*") if each.is_file()]
    assert not any(secret.encode() in content for secret in secrets for content in stored)
    assert not any(secret in repr(row) for secret in secrets for row in rows(str(STORE), (JOB_RUNS,))["job_runs"])


def has_group(place: ObjectStore) -> bool:
    return any(f"'{GROUP}'" in row for found in rows(str(place)).values() for row in found)


def generations(place: Path) -> list[str]:
    names = ["group_id", "incarnation", "generation_id", "joined_at", "member_count"]
    return sorted(map(repr, DeltaTable(place / "generations").to_pyarrow_table(columns=names).to_pylist()))


@pytest.mark.faults
def test_every_scheduled_job_runs_and_says_when_the_store_goes_away(recorded, tmp_path, monkeypatch) -> None:
    """From a broker to an address with the other scheme, which is the whole warehouse, and back into a folder."""
    local, back = tmp_path / "local" / "w", tmp_path / "back"
    for command in ("ingest", "build", "analyze"):
        assert 0 == Job(command, local, recorded).end()
    config = ["--config", shutil.copy(local.parent / "regroup.toml", tmp_path)]
    with object_store() as server, commands(server, tmp_path / "process") as process:
        server.files.create_dir(BUCKET)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        at = ["--warehouse", str(STORE), *config]
        for command in ("ingest", "build", "analyze", "quality", "maintain"):
            assert 0 == process.run(command, "--once", *at), process.printed
        assert rows(str(local)) == rows(str(STORE))
        assert 0 == process.run("copy", "--from", str(STORE), "--warehouse", str(back), *config), process.printed
        assert rows(str(local)) == rows(str(back))
        assert 0 == process.run("rebuild", *at), process.printed
        assert rows(str(local)) == rows(str(STORE))
        # A capture of the broker, stored there and replayed from there.
        place = f"{STORE}/capture"
        assert 0 == process.run("capture", "--out", place, "--duration", "0", *config), process.printed
        assert 0 == process.run("replay", place, "--warehouse", str(tmp_path / "again"), *config), process.printed
        assert generations(local) == generations(tmp_path / "again")
        # The poll sees settings of the broker that the local tables do not know.
        for command in ("poll", "notify"):
            assert 0 == process.run(command, "--once", *at), process.printed
        assert has_group(STORE)
        named = ["--cluster", recorded.name, "--group", GROUP, "--now"]
        assert 0 == process.run("erase", *named, *at), process.printed
        assert not has_group(STORE)
        server.process.terminate()
        server.process.wait()
        assert 2 == process.run("build", "--once", *at)
        assert "the store does not answer. Check AWS_ENDPOINT_URL" in process.printed
        assert "Traceback" not in process.printed
        assert not any(secret in process.printed for secret in (server.key, server.secret))
