"""Too many records that cannot be decoded end the stream before they fill the quarantine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.config.errors import UserError
from jobs.kafka.quarantine_limit import IN_A_ROW, LEAST, QuarantineLimit
from schemas.bronze import COVERAGE, QUARANTINE
from tests.source.offset_records import commit
from tests.source.test_stream import ingest, rows, tables  # noqa: F401 - a fixture

UNREADABLE = commit(0)._replace(value=b"\x00\x09from the future")


def test_a_foreign_topic_ends_the_stream_with_nothing_written(spark, tables, topic, stream):  # noqa: F811
    topic.write([UNREADABLE] * (IN_A_ROW + 1))
    whole = replace(stream, max_offsets_per_trigger=10_000)
    with pytest.raises(UserError, match=r"more than 1,000 records in a row in .*-0 on c cannot be decoded"):
        ingest(spark, tables, whole)
    assert [] == rows(tables, COVERAGE, "records")
    ingest(spark, tables, replace(whole, has_quarantine_limit=False))
    assert [(IN_A_ROW + 1, IN_A_ROW + 1)] == rows(tables, COVERAGE, "records", "quarantined")


def test_one_in_ten_ends_the_stream_once_a_thousand_were_read(spark, tables, topic, stream):  # noqa: F811
    topic.write([UNREADABLE if n % 10 == 0 else commit(n) for n in range(1_500)])
    with pytest.raises(UserError, match=r"10 % of the records in .*-0 on c cannot be decoded"):
        ingest(spark, tables, replace(stream, max_offsets_per_trigger=600))
    assert 60 == len(rows(tables, QUARANTINE, "reason")), "of the batch before"


def test_a_share_is_of_the_latest_records_however_they_came():
    limit = QuarantineLimit("c", "t")
    for _ in range(100):
        limit.check([(0, LEAST, 0), (1, 10, 0)])
    limit.check([(0, 500, 500)])
    with pytest.raises(UserError, match="t-0 on c"):
        limit.check([(0, 100, 100)])


def test_few_records_say_nothing():
    QuarantineLimit("c", "t").check([(0, LEAST - 1, LEAST - 1)])
