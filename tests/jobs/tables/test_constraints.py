"""Rules that a catalog keeps: rows with an estimate outside its bounds are refused, and keys are written down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from jobs.config.errors import UserError
from jobs.tables import named_tables
from jobs.tables.append import append_frame
from jobs.tables.catalog.checks import condition
from jobs.tables.catalog.keys import KEYED, add_keys, missing
from jobs.tables.catalog.violation import violation_named
from jobs.tables.create_tables import PROPERTIES, create_tables
from jobs.tables.delta_io import read
from jobs.tables.location import bind
from jobs.tables.named_tables import properties
from jobs.tables.paths import TableName, table_path
from jobs.tables.replace import replace_rows
from pipelines.arrow_types import stored
from schemas.gold import ADVICE, ALERTS, GROUP_HEALTH, VERDICTS
from schemas.silver import GENERATIONS, GROUP_EVENTS, GROUPS, REBALANCES, STALLS
from testing.warehouses import recorded
from tests.whole_rows import of_table, whole

KEY = {"cluster": "kafka", "group_id": "orders", "incarnation": 0, "generation_id": 1}


@pytest.fixture(scope="module")
def schema(spark, tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("constraints")
    spark.sql(f"CREATE SCHEMA constrained LOCATION '{folder}/schema'")
    bind(folder / "warehouse", "spark_catalog.constrained")
    yield folder / "warehouse"
    spark.sql("DROP SCHEMA constrained CASCADE")


@pytest.fixture(scope="module")
def rows() -> recorded.Rows:
    return recorded.rows_of({"churn": "eager_churn"})


def verdict(least: float, estimate: float, most: float, generation: int = 1) -> dict[str, object]:
    lost = ("lost_resource_seconds_min", "lost_resource_seconds", "lost_resource_seconds_max")
    return whole(
        {**KEY, "generation_id": generation, **dict(zip(lost, (least, estimate, most), strict=True))}, VERDICTS
    )


def test_measured_bounds_are_constrained_and_modelled_ones_are_not() -> None:
    constrained = {name for name, table in KEYED.items() if condition(table)}
    assert {t.name for t in (GENERATIONS, STALLS, REBALANCES, GROUP_HEALTH, VERDICTS)} <= constrained
    assert {ADVICE.name, GROUPS.name, ALERTS.name}.isdisjoint(constrained)
    assert "_low" not in str(condition(REBALANCES))


def test_correct_rows_are_appended_and_merged_and_wrong_ones_refused_in_one_sentence(spark, schema) -> None:
    create_tables(spark, schema, (VERDICTS,))
    create_tables(spark, schema, (VERDICTS,))
    path = table_path(schema, VERDICTS)
    kept = properties(path)["delta.constraints.verdicts_bounds"]
    assert "".join(str(condition(VERDICTS)).split()) == "".join(kept.split())
    first = stored([verdict(0.5, 1.0, 1.5)], VERDICTS)
    append_frame(spark.createDataFrame(first), schema, VERDICTS)
    sentence = r"A new row of verdicts has an estimate outside its own bounds \(.*lost_resource_seconds = 2\.0.*\)"
    wrong = stored([verdict(0.5, 2.0, 1.5)], VERDICTS)
    with pytest.raises(UserError, match=sentence), violation_named():
        append_frame(spark.createDataFrame(stored([verdict(0.5, 2.0, 1.5, generation=2)], VERDICTS)), schema, VERDICTS)
    with pytest.raises(UserError, match=sentence), violation_named():
        replace_rows(spark, schema, VERDICTS, first, wrong)
    changed = stored([verdict(0.25, 1.0, 2.0), verdict(1.0, 1.0, 1.0, generation=2)], VERDICTS)
    assert 2 == replace_rows(spark, schema, VERDICTS, first, changed)
    assert changed.to_pylist() == read(spark, schema, VERDICTS).orderBy("generation_id").toArrow().to_pylist()


def test_an_existing_table_gets_its_constraint_unless_a_row_breaks_it(spark, schema, capsys) -> None:
    """Tables of an earlier version, which had no constraints. The second call finds nothing to do."""
    for table in (GENERATIONS, STALLS):
        named_tables.ensure(TableName(table_path(schema, table)), table, PROPERTIES)
    key = of_table(KEY, STALLS) | {"stopped_by_offset": 1, "name": "orders", "index": 0}
    backwards = whole(key | {"resumed_at_earliest": 2, "resumed_at_latest": 1}, STALLS)
    append_frame(spark.createDataFrame(stored([backwards], STALLS)), schema, STALLS)
    create_tables(spark, schema, (GENERATIONS, STALLS))
    commits = {table: named_tables.version(TableName(table_path(schema, table))) for table in (GENERATIONS, STALLS)}
    create_tables(spark, schema, (GENERATIONS, STALLS))
    assert "delta.constraints.generations_bounds" in properties(table_path(schema, GENERATIONS))
    assert "delta.constraints.stalls_bounds" not in properties(table_path(schema, STALLS))
    assert commits == {table: named_tables.version(TableName(table_path(schema, table))) for table in commits}
    sentence = (
        "The constraint stalls_bounds was not added to the table stalls, because 1 row breaks the rule "
        "resumed_at_earliest <= resumed_at_latest.\n"
    )
    assert sentence == capsys.readouterr().out


def test_readers_without_spark_read_a_table_with_a_constraint(spark, schema) -> None:
    create_tables(spark, schema, (VERDICTS,))
    location = spark.sql(f"DESCRIBE DETAIL {table_path(schema, VERDICTS)}").collect()[0]["location"]
    table = DeltaTable(location)
    assert "checkConstraints" in table.protocol().writer_features
    assert 1 == table.protocol().min_reader_version
    table.to_pyarrow_table()


@pytest.mark.parametrize("table", [t for t in KEYED.values() if condition(t)], ids=lambda table: table.name)
def test_recorded_rows_keep_the_constraints(spark, rows, table) -> None:
    frame = spark.createDataFrame(stored([], table) if not rows.get(table.name) else _as_written(rows, table))
    assert 0 == frame.where(f"NOT ({condition(table)})").count()


def _as_written(rows, table):
    return stored(rows[table.name], table)


def test_tables_below_an_address_have_no_constraints(spark, tmp_path) -> None:
    bind(tmp_path / "w", str(tmp_path / "address"))
    create_tables(spark, tmp_path / "w", (VERDICTS,))
    assert not [key for key in properties(table_path(tmp_path / "w", VERDICTS)) if "constraints" in key]


def test_another_error_is_left_as_it_is() -> None:
    with pytest.raises(ValueError, match="of another kind"), violation_named():
        raise ValueError("of another kind")


def test_primary_keys_come_first_and_only_existing_tables_have_keys() -> None:
    keys = missing("main.regroup", [GENERATIONS.name, GROUPS.name, REBALANCES.name, "other"], ())
    assert [
        ("generations", "generations_key", "PRIMARY KEY (`cluster`, `group_id`, `incarnation`, `generation_id`)"),
        ("groups", "groups_key", "PRIMARY KEY (`cluster`, `group_id`)"),
    ] == keys[:2]
    assert ["rebalances_key", "generations_group_id_in_groups", "rebalances_first_generation_id_in_generations",
            "rebalances_last_generation_id_in_generations"] == [key.name for key in keys[2:]]  # fmt: skip
    assert (
        "FOREIGN KEY (`cluster`, `group_id`, `incarnation`, `last_generation_id`) REFERENCES "
        "`main`.`regroup`.`generations` (`cluster`, `group_id`, `incarnation`, `generation_id`)"
    ) == keys[-1].clause
    known = {key.name for key in keys[:-1]}
    assert keys[-1:] == missing("main.regroup", [GENERATIONS.name, GROUPS.name, REBALANCES.name], known)


def test_names_of_keys_are_unique_and_spark_understands_every_statement(spark) -> None:
    keys = missing("main.regroup", KEYED, ())
    assert len(keys) == len({key.name for key in keys}) > len(KEYED)
    understood = spark._jsparkSession.sessionState().sqlParser()
    for key in keys:
        understood.parsePlan(f"ALTER TABLE main.regroup.{key.table} ADD CONSTRAINT {key.name} {key.clause}")


def test_a_catalog_without_an_information_schema_gets_no_keys(spark, schema, capsys) -> None:
    add_keys(schema)
    assert "" == capsys.readouterr().out


def test_a_key_that_is_refused_is_reported_and_the_next_is_tried(spark, schema, tmp_path, capsys) -> None:
    """Open-source Delta has no keys: the statements reach it only because the information schema is made here."""
    create_tables(spark, schema, (GROUPS, GROUP_EVENTS))
    spark.sql(f"CREATE SCHEMA information_schema LOCATION '{tmp_path}/information'")
    try:
        columns = "table_schema STRING, table_name STRING"
        spark.sql(f"CREATE TABLE information_schema.tables ({columns}) USING parquet")
        spark.sql(
            f"CREATE TABLE information_schema.table_constraints ({columns}, constraint_name STRING) USING parquet"
        )
        spark.sql(
            "INSERT INTO information_schema.tables VALUES ('constrained', 'groups'), ('constrained', 'group_events')"
        )
        spark.sql("INSERT INTO information_schema.table_constraints VALUES ('constrained', 'groups', 'groups_key')")
        add_keys(schema)
    finally:
        spark.sql("DROP SCHEMA information_schema CASCADE")
    printed = capsys.readouterr().out
    assert "The key group_events_key of the table group_events was not added" in printed
    assert "The key group_events_group_id_in_groups of the table group_events was not added" in printed
    assert "groups_key of the table groups" not in printed
