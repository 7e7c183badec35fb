"""Defects of deltalake that the writer of local tables works around. If a test fails here after an upgrade, the defect
is fixed: then check whether the workaround can be removed (docs/decisions/003-written-without-spark.md).
"""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError


def test_of_two_compactions_of_the_same_files_both_win(tmp_path) -> None:
    """`jobs.tables.local_rewrite` commits only if there was no other commit meanwhile."""
    for number in range(4):
        deltalake.write_deltalake(tmp_path, pa.table({"n": [number]}), mode="append")
    first, second = deltalake.DeltaTable(tmp_path), deltalake.DeltaTable(tmp_path)
    first.optimize.compact()
    second.optimize.compact()
    assert 8 == deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows, "every row is there twice"


def test_a_clustered_table_cannot_be_appended_to(tmp_path) -> None:
    """`jobs.tables.transactions.is_local` asks a table which engine writes it. delta-rs issue 1626 is about reading one."""
    deltalake.write_deltalake(tmp_path, pa.table({"n": [1]}))
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
    domain = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["n"]]}', "removed": False}
    commit.write_text("\n".join(json.dumps(each) for each in ({"protocol": features}, {"domainMetadata": domain})))
    assert 1 == deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows
    with pytest.raises(DeltaError, match=r"clustering|Clustered"):
        deltalake.write_deltalake(tmp_path, pa.table({"n": [2]}), mode="append")


def test_arrow_cannot_filter_the_strings_that_a_merge_writes(tmp_path) -> None:
    """`jobs.tables.replace` reads and rewrites files instead of using MERGE."""
    deltalake.write_deltalake(tmp_path, pa.table({"key": ["a", "b"], "value": [1, 2]}))
    newer = pa.table({"key": ["b"], "value": [3]})
    merge = deltalake.DeltaTable(tmp_path).merge(newer, "old.key = new.key", source_alias="new", target_alias="old")
    merge.when_matched_update_all().execute()
    table = deltalake.DeltaTable(tmp_path)
    assert [{"key": "a", "value": 1}, {"key": "b", "value": 3}] == table.to_pyarrow_table().sort_by("key").to_pylist()
    with pytest.raises(pa.ArrowNotImplementedError, match="string_view"):
        table.to_pyarrow_table(filters=[("key", "=", "b")])
