"""Every question that the pages ask is answered by Spark SQL as by DuckDB, row by row, whoever asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from databricks.sql.exc import ServerOperationError

from dashboards import store as store_module
from dashboards.access import Access
from dashboards.app import create_app, page
from dashboards.databricks_lake import DatabricksLake
from dashboards.lake import TABLES, Lake, LakeError, LocalLake
from dashboards.pages import fleet
from dashboards.search import Search
from dashboards.store import ORDERS, Store
from dashboards.urlstate import PATHS, parse
from tests.ui import sample
from tests.ui.databricks import CATALOG, Databricks, DuckEngine, SparkEngine

HOSTILE = ("'; DROP TABLE groups; --", '" OR ""="', ":p_cap", "$cap", "a\nb", "`", "ünï\\", "{}", '"]', "%")
READERS = (None, ("billing-", "ship"), ("'", ":p_cap"), ())


class Recording:
    """Asks the lake, and keeps what it was asked."""

    def __init__(self, lake: LocalLake) -> None:
        self._lake = lake
        self.asked: dict[str, list[tuple[Any, ...]]] = {}

    def versions(self):
        return self._lake.versions()

    def changed_at(self):
        return self._lake.changed_at()

    def query(self, sql, tables, cap, parameters, prefixes=None):
        found = self._lake.query(sql, tables, cap, parameters, prefixes)
        asked = self.asked.setdefault(sql, [])
        if (question := (tables, cap, dict(parameters))) not in asked:
            # Those that have an answer are kept rather than those that have none.
            asked.insert(0, question) if found.rows else asked.append(question)
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory, now):
    """A bit of everything, and gold of every group."""
    folder = tmp_path_factory.mktemp("asked")
    ids = sample.hostile(now, HOSTILE)
    rows = sample.merge({}, sample.everyday(now), ids)
    topic = "orders"
    rows["admin_observations"] = [
        {"cluster": sample.CLUSTER, "observed_at": now - 1000, "source": "poll", "kind": kind, "subject": topic, "body": body}
        for kind, body in (
            ("end_offsets", json.dumps({"topic": topic, "ends": {"0": 7}})),
            ("error", json.dumps({"call": "DescribeGroups", "text": "no", "subject": "g"})),
            ("group_list", "{}"),
        )
    ]  # fmt: skip
    sample.write(folder, rows)
    sample.write_gold(folder, now, [*HOSTILE, "billing-worker", "shipping-planner"])
    return folder


@pytest.fixture(scope="module")
def questions(folder, now) -> dict[str, list[tuple[Any, ...]]]:
    """What all pages ask in all of their states, by SQL text."""
    recording = Recording(LocalLake(folder))
    store = Store(recording)
    asked = ["from=all", "from=now-1h", f"from=now-1h&cluster={sample.CLUSTER}&q=a", "storm=together", "from=1&to=2"]
    of_group = "&group=billing-worker&incarnation=0&generation=5"
    asked += [f"from={since}&cluster={sample.CLUSTER}{of_group}" for since in ("all", "now-1h", "now-20m")]
    for path in PATHS:
        for search in asked:
            assert "Something went wrong" not in str(page(store, path, f"?{search}", None, now)[0])
    for order in ORDERS:
        for direction in ("asc", "desc"):
            fleet.block(store, parse("/", "?from=all"), {"sortModel": [{"colId": order, "sort": direction}]}, now)
    Search(recording).find("a")
    store.group_by_hash(sample.CLUSTER, "0" * 32)
    for text in HOSTILE:
        store.group(sample.CLUSTER, text)
        page(store, "/", f"?q={text}", None, now)
    return recording.asked
