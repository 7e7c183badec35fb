"""A stream of Kubernetes beside a recorded cluster: the pod of a removed member was OOMKilled just before."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import pytest

from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from dashboards.urlstate import Window
from jobs.analyze import analyze
from jobs.cli import main
from jobs.config.settings import Settings
from jobs.silver.build_marks import update_marks
from jobs.tables.append import append
from jobs.tables.new_rows import NewRows
from pipelines.kubernetes.observation_rows import rows_of_lines
from pipelines.log_lines import PlacedLine
from schemas.bronze import ADMIN_OBSERVATIONS, QUARANTINE
from schemas.gold import CLUSTER_PATTERNS, GROUP_TABLES, MARKS, STORMS, VERDICTS
from schemas.silver import GROUP_EVENTS
from testing.recordings import CAPTURES
from tests.kubernetes.objects import event, pod, terminated

CLUSTER = "kafka"
GROUP, KILLED, BEGAN = "imports-joiner", "imports-joiner-2", "2026-11-21T07:25:10Z"
TABLES = (*GROUP_TABLES, CLUSTER_PATTERNS, STORMS, MARKS)
OOM = "OOMKilled payments/imports-joiner-2 (container app)"


def stream() -> list[dict]:
    """What `kubectl get pods,events -w -o json` printed: all pods, two of them killed, and an event of no interest."""
    pods = [
        pod(name, address="127.0.0.1", uid=f"uid-{name}", startTime=BEGAN)
        for name in (*(f"imports-joiner-{number}" for number in range(4)), "routing-enricher-0", "routing-enricher-1")
    ]
    killed = pod(
        KILLED, address="127.0.0.1", uid=f"uid-{KILLED}", startTime=BEGAN, **terminated(at="2026-11-21T07:25:39Z")
    )
    probed = event(name="routing-enricher-1") | {"lastTimestamp": "2026-11-21T07:25:57Z", "firstTimestamp": None}
    probed["involvedObject"]["uid"] = "uid-routing-enricher-1"
    return [*pods, killed, probed, event("Pulled", "Container image is present")]


def replayed(folder: Path, objects: list[dict], *options: str, name: str = "eager_churn") -> Path:
    """Return the warehouse of the capture together with these objects."""
    capture, warehouse = folder / "capture", folder / "warehouse"
    shutil.copytree(CAPTURES / name, capture)
    # Write every second object as kubectl prints it.
    lines = "".join(json.dumps(each, indent=4 * (at % 2) or None) + "\n" for at, each in enumerate(objects))
    (capture / "kubernetes-1.log").write_text(lines, encoding="utf-8")
    assert 0 == main(["replay", str(capture), "--warehouse", str(warehouse), *options])
    return warehouse


def rows(warehouse: Path, table, *columns: str) -> list:
    stored = deltalake.DeltaTable(str(warehouse / table.name))
    return stored.to_pyarrow_table(columns=list(columns or table.names)).to_pylist()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Path:
    return replayed(tmp_path_factory.mktemp("kubernetes"), stream())


def test_the_verdict_on_the_removed_member_is_its_pod(warehouse, capsys) -> None:
    at = "2026-11-21T07:25:45Z"
    assert 0 == main(["why", GROUP, "--at", at, "--warehouse", str(warehouse)])
    told = " ".join(capsys.readouterr().out.split())
    assert "The pod imports-joiner-2 was OOMKilled 6.7 s before its member was gone (observed)." in told
    assert "pod failure" in told.replace("_", " ") or "pods that were killed" in told
    (row,) = (row for row in rows(warehouse, VERDICTS) if (row["group_id"], row["generation_id"]) == (GROUP, 5))
    assert ("pod_failure", "client_application", "observed") == (row["cause"], row["verdict"], row["evidence"])
    assert [("oom_killed", OOM, KILLED)] == [
        (each["change"], each["text"], each["instance"]) for each in row["pod_changes"]
    ]
    assert any(OOM in line and "kubernetes [observed]" in line for line in row["proof"])


def test_its_incident_lists_the_change_as_observed(warehouse, capsys) -> None:
    main(["incident", GROUP, "--generation", "5", "--format", "json", "--warehouse", str(warehouse)])
    timeline = json.loads(capsys.readouterr().out)["timeline"]
    shown = [line for line in timeline if OOM in line["text"]]
    assert [f"Pod: {OOM} ({GROUP})"] == [line["text"] for line in shown]
    assert ["observed"] == [line["evidence"] for line in shown]


def test_time_axes_have_a_flag_for_it_and_readers_see_only_flags_of_their_groups(warehouse) -> None:
    at = round(datetime(2026, 11, 21, 7, 25, 39, tzinfo=UTC).timestamp() * 1000)
    window = Window(at - 60_000, at + 60_000, is_live=False)
    flags = Store(LocalLake(warehouse)).marks(window)
    assert [OOM, "killed by a probe payments/routing-enricher-1 (container app)"] == [each["text"] for each in flags]
    assert [["imports-joiner"], ["routing-enricher"]] == [each["group_ids"] for each in flags]
    assert [OOM] == [each["text"] for each in Store(LocalLake(warehouse)).marks(window, groups=[GROUP])]
    lake = LocalLake(warehouse)
    for prefixes, expected in ((None, 8), (("routing-",), 0), (("imports-", "routing-"), 0)):
        assert expected == len(lake.query("SELECT * FROM marks LIMIT $cap", ["marks"], 99, {}, prefixes).rows)
    asked = "SELECT group_id, pod_changes FROM verdicts WHERE array_length(pod_changes) > 0 LIMIT $cap"
    seen = lake.query(asked, ["verdicts"], 99, {}, ("routing-",)).rows
    assert {"routing-enricher"} == {row["group_id"] for row in seen}


@pytest.mark.parametrize("options", [("--batches", "4", "--seed", "3"), ("--batches", "2")])
def test_repeated_and_reordered_in_other_batches_it_gives_the_same_tables(warehouse, tmp_path, options) -> None:
    again = replayed(tmp_path, [*stream()[::-1], *stream()], *options)
    for table in TABLES:
        assert sorted(map(repr, rows(again, table))) == sorted(map(repr, rows(warehouse, table))), table.name


def test_nothing_is_quarantined(warehouse) -> None:
    assert [] == [row for row in rows(warehouse, QUARANTINE, "source", "reason") if "kubernetes" in row["source"]]


def test_reports_that_arrive_after_the_analysis_change_what_it_found(warehouse, tmp_path) -> None:
    later = replayed(tmp_path, [])
    settings, reports = Settings(warehouse=later), stream()
    for objects in (reports[6:], reports[:6], reports):  # first the ends, then starts and addresses, then all again
        lines = [PlacedLine("kubernetes-1.log", number, json.dumps(each)) for number, each in enumerate(objects)]
        seen, refused, used = rows_of_lines(lines, cluster=CLUSTER)
        assert ([], sum(each.get("kind") == "Pod" or "liveness" in each["message"] for each in objects)) == (
            refused,
            used,
        )
        new = NewRows.of(ADMIN_OBSERVATIONS, seen)
        append(None, later, new)
        update_marks(None, later, new)
        analyze(None, settings)
    for table in TABLES:
        assert sorted(map(repr, rows(later, table))) == sorted(map(repr, rows(warehouse, table))), table.name
    assert 0 == analyze(None, settings)


def test_a_storm_lists_the_pods_of_its_members(tmp_path) -> None:
    capture, warehouse = CAPTURES / "storms", tmp_path / "plain"
    assert 0 == main(["replay", str(capture), "--warehouse", str(warehouse)])
    names = ("kind", "client_id", "event_at")
    gone = [
        r["event_at"]
        for r in rows(warehouse, GROUP_EVENTS, *names)
        if r["client_id"] == "label-printer-1" and r["kind"] == "session_expired"
    ]
    assert len(gone) > 3
    one = pod("label-printer-1", address="127.0.0.1", uid="uid-1", startTime="2020-01-01T00:00:00Z")
    killed = [one | {"status": terminated(at=f"{at - timedelta(seconds=3):%Y-%m-%dT%H:%M:%SZ}")} for at in gone]
    folder = tmp_path / "storms"
    folder.mkdir()
    found = rows(replayed(folder, [one, *killed], name="storms"), STORMS, "group_ids", "explanation", "evidence")
    told = [row["explanation"] for row in found if any("label-printer" in group for group in row["group_ids"])]
    assert told
    assert all(
        "Kubernetes reported shortly before its members were gone: 'OOMKilled payments/label-printer-1" in text
        for text in told
    )


def test_pages_draw_no_flags_of_pods_for_verdicts_of_an_earlier_regroup(warehouse, tmp_path) -> None:
    folder = str(tmp_path / "verdicts")
    stored = deltalake.DeltaTable(str(warehouse / "verdicts")).to_pyarrow_table()
    deltalake.write_deltalake(folder, stored.drop_columns(["pod_changes"]))
    window = Window(0, 2**42, is_live=False)
    assert [] == Store(LocalLake(tmp_path)).marks(window)
