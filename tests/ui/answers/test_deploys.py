"""`regroup deploys` on a recorded cluster: two restarts of one group, distinguished and compared."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from dashboards.answers.deploys import compared_deploys, compared_text, deploys, deploys_text
from dashboards.answers.why import NoAnswerError
from dashboards.lake.lake import LocalLake
from dashboards.queries.deploy_store import DEPLOY_ROWS
from dashboards.urlstate import Window
from jobs.cli import main
from testing import sample
from testing.warehouses.recorded import rows_of, store
from tests.ui.pages.hostile import STRINGS

OLD = {"stale_ms": 120_000}
TWICE = "cart-cleaner"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("deploys")
    store(folder, rows_of({"edge": "storms", "restarts": "rolling_restart"}))
    folder.chmod(0o700)
    return folder


def test_the_newest_deploys_come_first_with_their_cost(recorded) -> None:
    found = deploys(LocalLake(recorded), None)
    text = deploys_text(found, now_ms=found.seen.last_at, **OLD)
    assert "5 deploys of 4 groups" in text
    rows = text.splitlines()[-5:]
    assert [row.split()[0] for row in rows[:2]] == [TWICE, TWICE]
    assert "times the one before" in rows[0]
    assert all("first known deploy" in row for row in rows[1:])
    assert all(row.endswith("none") for row in rows), "everybody came back"
    assert deploys(LocalLake(recorded), None, group=TWICE).rows == found.rows[:2]
    assert deploys(LocalLake(recorded), None, cluster="restarts").rows == found.rows[2:]


def test_the_newest_deploy_stands_beside_the_one_before(recorded) -> None:
    found = compared_deploys(LocalLake(recorded), TWICE)
    text = compared_text(found, now_ms=found.seen.last_at, **OLD)
    for part in ("less than the deploy of", "The newest", "The one before", "Stable after", "cart-cleaner-2", "3 → 3"):
        assert part in text, part
    assert found.newest is not None
    assert found.before is not None
    assert found.newest["lost_resource_seconds"] < found.before["lost_resource_seconds"]


def test_the_command_prints_text_and_json_with_exit_codes(recorded, capsys) -> None:
    here = ("--warehouse", str(recorded))
    assert 0 == main(["deploys", "--last", "all", "--json", *here])
    values = json.loads(capsys.readouterr().out)
    assert values["is_whole"]
    first = values["deploys"][0]
    assert (first["group_id"], first["rebalances"], first["not_back"]) == (TWICE, 6, [])
    began, stable = (datetime.fromisoformat(first[name]) for name in ("started_at", "stable_at"))
    assert (stable - began).total_seconds() * 1000 == pytest.approx(first["stable_ms"])

    assert 0 == main(["deploys", TWICE, "--compare", "--json", *here])
    pair = json.loads(capsys.readouterr().out)
    assert (pair["newest"], pair["before"]) == tuple(values["deploys"][:2])
    assert "less than" in pair["comparison"]

    assert 1 == main(["deploys", "stock-loader-next", "--compare", *here])
    assert "It is the first known deploy" in capsys.readouterr().out
    assert 1 == main(["deploys", "--last", "15m", *here])
    assert "Nothing is known of this range" in capsys.readouterr().out
    assert 2 == main(["deploys", "--compare", *here])
    assert "--compare needs a group" in capsys.readouterr().err
    assert 2 == main(["deploys", "nobody", *here])
    assert "There is no group nobody" in capsys.readouterr().err


def test_deploys_of_one_cluster_are_read_although_others_have_more_than_are_read(tmp_path, now) -> None:
    rows = sample.everyday(now)
    [mine, *_] = rows["deploys"]
    other = rows["groups"][0] | {"cluster": "busy"}
    many = [mine | {"cluster": "busy", "started_at": now - ref} for ref in range(1, DEPLOY_ROWS + 2)]
    quiet = mine | {"started_at": now - 3_600_000}
    sample.write(tmp_path, rows | {"deploys": [quiet, *many], "groups": [*rows["groups"], other]})
    window = Window(now - 86_400_000, now, is_live=False)
    found = deploys(LocalLake(tmp_path), window, cluster=mine["cluster"])
    assert [quiet["started_at"]] == [row["started_at"] for row in found.rows]
    assert found.is_whole
    with pytest.raises(NoAnswerError, match="There is no cluster bussy"):
        deploys(LocalLake(tmp_path), window, cluster="bussy")


def test_a_warehouse_without_the_table_says_what_to_run(tmp_path, now) -> None:
    rows = sample.everyday(now)
    sample.write(tmp_path, rows)
    (tmp_path / "deploys" / "_delta_log").rename(tmp_path / "gone")
    with pytest.raises(NoAnswerError, match=r"Deploys are not analyzed yet: run `regroup analyze`\."):
        deploys(LocalLake(tmp_path), None)


def test_hostile_names_stay_on_their_line(tmp_path, now) -> None:
    rows = sample.hostile(now, STRINGS[::9])
    rows["deploys"] = [
        row | {"text": text, "not_back": [text], "slowest": text, "restarted": [text]}
        for text in STRINGS[::9]
        for row in sample.deploys(now, text)["deploys"]
    ]
    sample.write(tmp_path, rows)
    lake = LocalLake(tmp_path)
    found = deploys(lake, Window(now - 86_400_000, now, is_live=False))
    printed = [deploys_text(found, now_ms=now, **OLD)]
    printed += [
        compared_text(compared_deploys(lake, row["group_id"], cluster=row["cluster"]), now_ms=now, **OLD)
        for row in found.rows[:20]
    ]
    for text in printed:
        assert not [c for c in text if (ord(c) < 32 and c != "\n") or ord(c) in (0x7F, 0x202E, 0x2066)]
    assert printed[0].count("\n") == 2 + 2 + 20 + 1
