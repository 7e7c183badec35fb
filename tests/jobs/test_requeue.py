"""After an update of the decoder, the tables are as if it had decoded everything from the beginning."""

from __future__ import annotations

import itertools

import pytest
from deltalake import DeltaTable

from jobs.silver import requeue as releasing
from jobs.silver.requeue import requeue
from jobs.tables.paths import table_path
from pipelines import bronze_batch
from pipelines.decoding import record_decoding
from pipelines.decoding.commit_decoding import decode_commit_values
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from tests.jobs.conftest import differing, rebuilt, replayed


def count(warehouse, table, column=None):
    rows = DeltaTable(table_path(warehouse, table)).to_pyarrow_table()
    return sum(rows[column].to_pylist()) if column else rows.num_rows


def know_less(monkeypatch) -> None:
    """Make the decoder refuse the values of GroupMetadata, and the version of every seventh commit value."""
    known = {key: readers for key, readers in record_decoding._VALUES.items() if key[0] != 2}
    numbers = itertools.count()

    def decode(values):
        return decode_commit_values([b"\x00\x09" if value and next(numbers) % 7 == 0 else value for value in values])

    monkeypatch.setattr(record_decoding, "_VALUES", known)
    monkeypatch.setattr(bronze_batch, "decode_commit_values", decode)


def test_what_a_newer_decoder_reads_of_quarantine_is_where_it_had_been_all_along(
    spark, expected, warehouse, monkeypatch
) -> None:
    with monkeypatch.context() as older:
        know_less(older)
        assert differing(expected, replayed(spark, warehouse, batches=2, seed=None)) != {}
    held, commits = count(warehouse, QUARANTINE), count(warehouse, OFFSET_COMMITS, "commits")
    assert held > 1_000
    with monkeypatch.context() as crashing:
        crashing.setattr(releasing, "_forget", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            requeue(spark, warehouse)
    assert held == requeue(spark, warehouse), "again after a crash"
    assert 0 == requeue(spark, warehouse)
    assert 0 == count(warehouse, QUARANTINE)
    read = count(warehouse, COORDINATOR_RECORDS) + count(warehouse, OFFSET_COMMITS, "commits")
    assert 11_890 == read, "each record of the capture once"
    assert commits < read
    assert differing(expected, rebuilt(spark, warehouse)) == {}
