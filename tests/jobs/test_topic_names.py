"""A topic that was known by its id has its name in all rows once a poll has seen it, whichever came first."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from deltalake import DeltaTable

from jobs.build import affected_groups, rebuild_affected, rebuild_all
from jobs.config.settings import Settings
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, COORDINATOR_RECORDS
from schemas.silver import GENERATION_MEMBERS, SILVER
from tests.jobs.conftest import silver
from tests.silver.group_records import T1, Script, epoch, member, target, target_epoch


def add(spark, warehouse, table, rows):
    new = NewRows.of(table, rows)
    append(spark, warehouse, new)
    rebuild_affected(spark, Settings(warehouse=warehouse), affected_groups({table: new}))


def names(warehouse) -> list[str]:
    rows = DeltaTable(table_path(warehouse, GENERATION_MEMBERS)).to_pyarrow_table().to_pylist()
    return [resource["name"] for row in rows for resource in row["assigned"]]


def test_a_poll_names_the_topics_of_groups_that_were_built_before(spark, warehouse) -> None:
    create_tables(spark, warehouse, (*BRONZE, *SILVER))
    script = Script().at(1_000, member("A", "orders", "returns"), epoch(2), target("A", 0), target_epoch(2))
    records = [
        row
        | {"cluster": "c", "group_id": "g", "key_version": 3, "value_version": 0, "body": json.dumps(row["body"]),
           "record_at": datetime.fromtimestamp(row["record_at"] / 1000, UTC)}
        for row in script.records
    ]  # fmt: skip
    add(spark, warehouse, COORDINATOR_RECORDS, records)
    assert [T1] == names(warehouse)
    body = {"kind": "topic", "topic": "returns", "topic_id": T1}
    seen = {"cluster": "c", "observed_at": datetime.now(UTC), "source": "poll", "kind": "topic", "subject": "returns"}
    add(spark, warehouse, ADMIN_OBSERVATIONS, [seen | {"body": json.dumps(body)}])
    assert ["returns"] == names(warehouse)
    found = silver(warehouse)
    rebuild_all(spark, Settings(warehouse=warehouse))
    assert found == silver(warehouse)
