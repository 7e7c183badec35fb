"""All queries of the pages in all of their states, over a warehouse with a few rows of everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from dashboards.answers.report import report
from dashboards.app import page
from dashboards.lake.lake import Lake, LocalLake, Rows
from dashboards.pages import fleet
from dashboards.queries.store import ORDERS, Store
from dashboards.teams import Teams
from dashboards.urlstate import PATHS, Window, parse
from dashboards.web.search import Search
from pipelines.arrow_types import stored
from schemas.gold import ADVICE, CLUSTER_PATTERNS, DIAGNOSES, PATTERNS
from testing import sample
from tests.whole_rows import of_table, whole

HOSTILE = ("'; DROP TABLE groups; --", '" OR ""="', ":p_cap", "$cap", "a\nb", "`", "ünï\\", '{}"]', "%", "x" * 300)
READERS = (("billing-", "ship"), ("'", ":p_cap", "$", "ünï\\"), ("nobody",), ())


class Recording:
    """Asks a lake, and records the questions by SQL text, those with a result first."""

    def __init__(self, lake: LocalLake) -> None:
        self.versions, self.changed_at, self._lake = lake.versions, lake.changed_at, lake
        self.asked: dict[str, list[tuple[Any, int, dict[str, Any]]]] = {}

    def query(self, sql, tables, cap, parameters, prefixes=None) -> Rows:
        found = self._lake.query(sql, tables, cap, parameters, prefixes)
        question = (tuple(tables), cap, dict(parameters))
        asked = self.asked.setdefault(sql, [])
        if question not in asked:
            asked.insert(0 if found.rows else len(asked), question)
        return found


def gold(table, group: str, now: int) -> dict[str, Any]:
    """Return a row with a value in every column."""
    by_type = {"INT": 1, "BIGINT": 2, "DOUBLE": 0.5, "STRING": group, "TIMESTAMP": now, "BOOLEAN": True}
    row = {c.name: by_type[c.type] for c in table.columns if c.type in by_type}
    more = {
        "cluster": sample.CLUSTER, "group_id": group, "action": "static_membership", "status": "suggested", "cause": "deploy",
        "evidence": "observed", "instances": [group], "settings": {"java": group}, "preconditions": [f"met: {group}"],
        "pattern": "rejoin_loop", "ended_at": None, "sources": ["topic"],
    }  # fmt: skip
    return row | more


@pytest.fixture(scope="module")
def folder(tmp_path_factory, now) -> Path:
    """A warehouse with a few rows of everything."""
    folder = tmp_path_factory.mktemp("asked")
    rows = sample.merge({}, sample.everyday(now), sample.hostile(now, HOSTILE))
    printed = {"cluster": sample.CLUSTER, "observed_at": now - 60_000, "source": "poll", "subject": "orders"}
    bodies = {
        "end_offsets": {"topic": "orders", "ends": {"0": 7}},
        "error": {"call": "DescribeGroups", "text": "no", "subject": HOSTILE[0]},
        "group_list": {},
    }
    rows["admin_observations"] = [printed | {"kind": kind, "body": json.dumps(body)} for kind, body in bodies.items()]
    committed = {"cluster": sample.CLUSTER, "group_id": "billing-worker", "topic": "orders", "partition": 0}
    place = {"log_epoch": 0, "source_partition": 0, "first_offset": 0, "last_offset": 0, "is_tombstone": False}
    times = {"first_commit_at": now - 90_000, "last_commit_at": now - 90_000}
    offsets = {"first_committed_offset": 5, "last_committed_offset": 5}
    rows["offset_commits"] = [committed | place | times | offsets]
    rows["generations"][0] |= {"not_costed": "too_large", "resources_not_costed": 250_000}
    limit = {"limit_name": "max_groups", "cluster": sample.CLUSTER, "reached_at": now, "allowed": 10, "groups": 3}
    rows["limits_reached"] = [limit | {"example": HOSTILE[0]}]
    (read,) = rows["coverage"]
    lost = {
        "from_offset": 2000,
        "to_offset": 2100,
        "is_gap": True,
        "gap_reason": "deleted",
        "from_at": None,
        "to_at": None,
    }
    rows["coverage"].append(read | lost)
    broken = {"cluster": sample.CLUSTER, "source": "log", "log_epoch": 0, "source_partition": 1, "record_at": now}
    rows["quarantine"] = [
        broken | {"source_offset": n, "reason": "bad_value", "detail": text, "raw_key": text.encode()}
        for n, text in enumerate(HOSTILE)
    ]
    unread = {"source": "broker-1.log", "source_partition": -1, "source_offset": 9, "reason": "unknown_layout"}
    rows["quarantine"].append(broken | unread | {"detail": HOSTILE[0], "lines": 7})
    moved = rows["reassignments"][0]
    rows["reassignment_samples"] = [
        {"cluster": moved["cluster"], "topic": moved["topic"], "partition": moved["partition"], "progress": 0.5,
         "observed_at": moved["started_at"] + 1000, "bytes_done": 5, "bytes_total": 10, "bytes_per_second": 2.5}
    ]  # fmt: skip
    sample.write(folder, rows)
    for table in (ADVICE, DIAGNOSES, PATTERNS):
        described = [gold(table, group, now - 1000) for group in (*HOSTILE, "billing-worker", "shipping-planner")]
        write_deltalake(
            f"{folder}/{table.name}", stored([whole(of_table(row, table), table) for row in described], table)
        )
    hit = {"pattern": "offsets_partition_down", "ended_at": None, "sources": ["log"], "groups": len(HOSTILE)}
    down = gold(CLUSTER_PATTERNS, HOSTILE[0], now - 1000) | hit | {"group_ids": list(HOSTILE)}
    shape = CLUSTER_PATTERNS
    write_deltalake(f"{folder}/{shape.name}", stored([whole(of_table(down, shape), shape)], shape))
    return folder


TEAMS = Teams.of({"billing": ["billing-*", "[!a-z]*.x"], "rest": [{"groups": "*-?*", "clusters": "prod-*"}]})


@pytest.fixture(scope="module")
def asked(folder, now) -> dict[str, list[tuple[Any, int, dict[str, Any]]]]:
    """All queries of the pages in all of their states."""
    recording = Recording(LocalLake(folder))
    store, of = Store(recording, TEAMS), f"cluster={sample.CLUSTER}&group=billing-worker&incarnation=0&generation=5"
    states = ["from=all", "from=now-1h&q=a", "storm=together", "from=1&to=2"]
    states += [f"from={since}&{of}" for since in ("all", "now-1h", "now-20m")]
    states += [f"from=all&cluster={sample.CLUSTER}&gid={'0' * 32}", "from=all&storm=gone"]
    states.append(f"from=all&{of}&at={now - 60_000}&against={now - 1_800_000}")
    for path in PATHS:
        for state in states:
            assert "Something went wrong" not in str(page(store, path, f"?{state}", None, now)[0]), (path, state)
    for state in (
        "by=cluster",
        "by=team",
        "by=group&team=billing",
        "team=billing&verdict=broker",
        "by=group&cause=coordinator",
    ):
        made = page(store, "/causes", f"?from=all&cluster={sample.CLUSTER}&{state}", None, now)[0]
        assert "Something went wrong" not in str(made), state
    day = Window(now - 86_400_000, now + 1, is_live=False)
    for team in ("", "billing", "none"):
        report(recording, day, teams=TEAMS, team=team)
    for order in ORDERS:
        for direction in ("asc", "desc"):
            fleet.block(store, parse("/", "?from=all"), {"sortModel": [{"colId": order, "sort": direction}]}, now)
    Search(recording).find("a")
    Search(recording).members("billing")
    episode = {"cluster": sample.CLUSTER, "group_id": "billing-worker", "incarnation": 0}
    store.episode_verdicts(episode | {"first_generation_id": 1, "last_generation_id": 9})
    for text in HOSTILE:
        store.group(sample.CLUSTER, text)
        store.diagnoses(text, [text, "billing-worker"])
        store.marks(Window(now - 3_600_000, now + 1, is_live=True), sample.CLUSTER, [text])
    return recording.asked


def plain(rows: Rows, sql: str) -> tuple[list[Any], bool]:
    """Nine digits of numbers with a fraction, and rows in order if the query has one."""
    described = [_plain(row) for row in rows.rows]
    return (described if "ORDER BY" in sql.rpartition(")")[2] else sorted(described, key=repr)), rows.is_capped


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((key, _plain(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return f"{value:.9g} of {type(value).__name__}" if isinstance(value, float) else value


def assert_same(folder: Path, lake: Lake, questions, prefixes) -> int:
    """Compare the results, and return how many were not empty."""
    local, answered = LocalLake(folder), 0
    for sql, tables, cap, parameters in questions:
        expected = plain(local.query(sql, tables, cap, parameters, prefixes), sql)
        assert expected == plain(lake.query(sql, tables, cap, parameters, prefixes), sql), (sql, parameters)
        answered += bool(expected[0])
    return answered
