"""Statements of the pages' queries, as Spark runs them where only Spark reads the tables."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.spark.spark_lake import with_literals

HOSTILE = ["'; DROP TABLE groups; --", "\\", "\\'", "a\nb", "ünï", "`", ":p_cap", "%", '"', ""]


def asked(spark, value):
    (row,) = spark.sql(with_literals("SELECT :p_value AS found", {"p_value": value})).collect()
    return row["found"]


@pytest.mark.parametrize("value", [*HOSTILE, 3, -1, 0.25, 1e300, True, None])
def test_a_parameter_becomes_a_literal_of_the_same_value(spark, value):
    assert value == asked(spark, value)


def test_a_time_becomes_a_literal_of_the_same_value(spark):
    at = datetime(2026, 11, 2, 12, 3, 4, 567_000, UTC)
    written = with_literals("SELECT unix_micros(:p_at) AS found", {"p_at": at})
    assert int(at.timestamp() * 1_000_000) == spark.sql(written).first()["found"]
