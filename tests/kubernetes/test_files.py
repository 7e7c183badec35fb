"""Log files and captures with objects of Kubernetes: each object once, with the lines of brokers beside them."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.capture import _marks
from jobs.config.clusters import LogFile
from jobs.kafka.log_source import LogReader, LogStream
from jobs.replay import CaptureRecords, bronze_of
from pipelines.kubernetes.pod_facts import fact
from pipelines.marks import mark_rows
from tests.kubernetes.objects import SECRET, event, pod, terminated
from tests.kubernetes.test_messages import LINE, records_of


def followed(path: Path) -> dict[str, list[dict]]:
    """Rows by table of all lines of a log file."""
    reader = LogReader(LogStream(cluster="kafka", logs=(LogFile(path=str(path)),)))
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    out: dict[str, list[dict]] = {}
    for stretch in reader.partitions(start, end):
        for batch in reader.read(stretch):
            for row in batch.to_pylist():
                for table, found in row.items():
                    if found is not None:
                        out.setdefault(table, []).append(found)
    reader.stop()
    return out


def test_a_followed_file_may_have_objects_and_log_lines(tmp_path) -> None:
    log = tmp_path / "kubectl.log"
    broken = json.dumps(pod(address="nowhere"))
    lines = [json.dumps(pod(**terminated())), LINE, json.dumps(event("Pulled", "")), broken, json.dumps(event()), "x"]
    log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = followed(log)
    assert 1 == len(rows["coordinator_events"])
    changes = [row["change"] for row in mark_rows(rows["admin_observations"])]
    assert ["oom_killed", "probe_failed", "started"] == sorted(changes)
    (refused,) = rows["quarantine"]
    assert (4, None) == (refused["source_offset"], refused["raw_value"])
    (covered,) = rows["coverage"]
    assert (6, 1, 2) == (covered["records"], covered["quarantined"], covered["skipped"])
    assert SECRET not in repr(rows)


def test_a_followed_file_may_be_what_kubectl_prints(tmp_path) -> None:
    log = tmp_path / "kubectl.log"
    watched = {"type": "MODIFIED", "object": pod(**terminated())}
    printed = [json.dumps(each, indent=4) for each in (watched, event("Pulled", ""), event())]
    log.write_text("".join(f"{each}\n" for each in (*printed, LINE)), encoding="utf-8")
    rows = followed(log)
    changes = [row["change"] for row in mark_rows(rows["admin_observations"])]
    assert ["oom_killed", "probe_failed", "started"] == sorted(changes)
    assert 1 == len(rows["coordinator_events"])
    assert [(4, 0)] == [(row["records"], row["quarantined"]) for row in rows["coverage"]]
    assert "quarantine" not in rows


def test_a_capture_keeps_the_changes_of_the_events_topic_and_replay_reads_them() -> None:
    found = records_of(
        json.dumps(pod(**terminated())).encode(), json.dumps({"log": json.dumps(event())}).encode(), b"x"
    )
    lines = [json.loads(line) for _, line in _marks(found, ())]
    assert 3 == len(lines)
    assert SECRET not in repr(lines)
    spoilt = lines[0] | {"at": "noon"}
    batch = CaptureRecords(observations=list(enumerate([*lines, spoilt])))
    rows = bronze_of(batch, "kafka", {})
    assert [fact(each).at for each in lines] == [row["observed_at"] for row in rows["admin_observations"]]
    assert ["invalid_timestamp"] == [row["reason"] for row in rows["quarantine"]]
