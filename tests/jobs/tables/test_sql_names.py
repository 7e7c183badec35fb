"""Names and texts in statements of Spark SQL."""

from __future__ import annotations

from deltalake import DeltaTable

from dashboards.lake.sql_names import literal
from jobs.tables.paths import named_by_path


def test_any_text_is_a_literal_and_any_path_a_name(spark, tmp_path) -> None:
    texts = ["", "it's", 'a "word"', "back\\slash", "\\'", "{braces}", "`ticks`", ":name", "line\nbreak", "𝄞", "-- x"]
    path = str(tmp_path / "a `b` {c} 'd'")
    spark.sql(f"CREATE TABLE {named_by_path(path)} (n INT, text STRING) USING delta").collect()
    values = ", ".join(f"({n}, {literal(text)})" for n, text in enumerate(texts))
    spark.sql(f"INSERT INTO {named_by_path(path)} VALUES {values}").collect()
    rows = DeltaTable(path).to_pyarrow_table().sort_by("n")
    assert texts == rows["text"].to_pylist()
