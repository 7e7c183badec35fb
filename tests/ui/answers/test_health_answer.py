"""`regroup health` reports every problem that the Health page shows, and nothing else."""

from __future__ import annotations

import json

from dashboards.answers.health import KINDS, health, health_text, health_values
from dashboards.lake.lake import LocalLake
from jobs.cli import main
from schemas.states import JobOutcome
from testing import sample
from tests.ui.pages.hostile import STRINGS

FRESH = {"stale_ms": 120_000}
READ = {
    "cluster": "prod", "source": "__consumer_offsets", "source_partition": 3, "log_epoch": 0, "from_offset": 0,
    "to_offset": 10, "is_gap": False, "records": 10, "skipped": 0, "quarantined": 0,
}  # fmt: skip


def warehouse(folder, now, *coverage, **tables):
    sample.write(folder, {"coverage": [READ | {"from_at": now, "to_at": now}, *coverage], **tables})
    return LocalLake(folder)


def kinds(found) -> list[str]:
    return [problem.kind for problem in found.problems]


def test_nothing_speaks_against_tables_that_are_current_and_whole(tmp_path, now) -> None:
    found = health(warehouse(tmp_path, now), now_ms=now + 4000, **FRESH)
    assert found.is_sound
    text = health_text(found, now_ms=now + 4000)
    assert "10 records and lines of 1 source read.\nThe newest record of prod is 4 s old.\n" in text
    assert "No problem with the tables was found." in text
    # Sources that were never read are also reported if there is no problem.
    assert ["No coordinator's log", "The brokers are not polled"] == [
        each.split(" has")[0].split(":")[0] for each in found.unknown
    ]


def test_a_newest_record_in_the_future_is_a_problem(tmp_path, now) -> None:
    found = health(warehouse(tmp_path, now), now_ms=now - 3 * 3_600_000, **FRESH)
    assert ["stale"] == kinds(found)
    sentence = "The newest record of prod is 3 h in the future: a clock is wrong, so its age is not known."
    assert sentence == found.problems[0].sentence
    assert " old" not in health_text(found, now_ms=now - 3 * 3_600_000)


def test_every_kind_of_problem_is_said(tmp_path, now) -> None:
    gap = READ | {"is_gap": True, "from_offset": 10, "to_offset": 20, "gap_reason": "deleted", "records": 0}
    broken = {"cluster": "prod", "source": "events", "log_epoch": 0, "source_partition": 0, "record_at": now}
    quarantine = [
        broken | {"source_offset": 1, "reason": "truncated", "detail": "the data ends too early"},
        broken | {"source_offset": 2, "reason": "unknown_layout", "detail": "x", "lines": 7},
    ]
    limit = {"limit_name": "max_groups", "cluster": "prod", "reached_at": now, "allowed": 10, "groups": 3}
    run = {
        "job": "analyze", "run_id": "r", "started_at": now, "told_at": now, "ended_at": now,
        "outcome": JobOutcome.FAILED.value, "error": "no space left",
    }  # fmt: skip
    rule = {
        "table_name": "groups", "checked_at": now, "rule": "r", "version": 0, "severity": "error",
        "sentence": "A group has no state.", "passed": False, "rows_checked": 9, "rows_failed": 2,
    }  # fmt: skip
    refused = {
        "cluster": "prod", "observed_at": now, "source": "poll", "kind": "error", "subject": "x",
        "body": json.dumps({"call": "DescribeConfigs", "text": "not authorized", "subject": "broker 1"}),
    }  # fmt: skip
    lake = warehouse(
        tmp_path, now, gap, quarantine=quarantine, limits_reached=[limit | {"example": "g"}], job_runs=[run],
        quality_results=[rule], admin_observations=[refused],
    )  # fmt: skip
    found = health(lake, now_ms=now + 3_600_000, **FRESH)
    assert list(KINDS) == kinds(found)
    assert not found.is_sound
    text = health_text(found, now_ms=now + 3_600_000).replace("\n  ", " ")
    for part in (
        "8 problems:", "The newest record of prod is 1 h old: what happened since is not known.",
        "1 span of __consumer_offsets in prod not read.", "(truncated): the data ends too early.",
        "7 log lines of events in prod not read (unknown_layout). Set events_layout",
        "3 groups of prod not built: the cluster has more groups than max_groups, 10.",
        "The call DescribeConfigs about broker 1 to prod failed or was refused: not authorized.",
        "The job analyze that began at", "failed: no space left.", "A group has no state. (2 rows of groups)",
    ):  # fmt: skip
        assert part in text, part
    values = json.loads(json.dumps(health_values(found)))
    assert [problem._asdict() for problem in found.problems] == values["problems"]


def test_a_poll_does_not_make_records_newer(tmp_path, now) -> None:
    poll = READ | {"source": "poll", "source_partition": -1, "from_at": now, "to_at": now + 3_600_000}
    found = health(warehouse(tmp_path, now, poll), now_ms=now + 3_600_000, **FRESH)
    assert (["stale"], {"prod": now}) == (kinds(found), found.newest)


def test_before_anything_was_read_nothing_is_sound(tmp_path, now, capsys) -> None:
    found = health(LocalLake(tmp_path), now_ms=now, **FRESH)
    assert not found.is_sound
    assert health_text(found, now_ms=now).startswith("Nothing has been read yet: run “regroup up”")
    assert 1 == main(["health", "--warehouse", str(tmp_path)])
    assert "Nothing has been read yet" in capsys.readouterr().out


def test_the_command_answers_as_text_and_as_json(tmp_path, now, capsys) -> None:
    warehouse(tmp_path, now - 3_600_000)
    assert 1 == main(["health", "--warehouse", str(tmp_path), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (False, ["stale"]) == (found["is_sound"], [each["kind"] for each in found["problems"]])


def test_hostile_names_stay_text(tmp_path, now) -> None:
    """Without a control character, and with each name whole in the JSON."""
    coverage, quarantine = [], []
    for number, text in enumerate(STRINGS):
        coverage.append(READ | {"cluster": text, "source": text, "from_at": now, "to_at": now, "from_offset": number})
        broken = {"cluster": text, "source": text, "log_epoch": 0, "source_partition": 0, "record_at": now}
        quarantine.append(broken | {"source_offset": number, "reason": "truncated", "detail": text})
    sample.write(tmp_path, {"coverage": coverage, "quarantine": quarantine})
    found = health(LocalLake(tmp_path), now_ms=now, **FRESH)
    printed = health_text(found, now_ms=now)
    assert all(character.isprintable() for character in printed.replace("\n", ""))
    assert {"quarantine"} == set(kinds(found))
    assert set(STRINGS) >= health_values(found)["newest_records"].keys()
