"""Which texts name a folder, which an object store, and which neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards.lake.address import ObjectStore, address
from dashboards.lake.errors import store_error


@pytest.mark.parametrize(
    "text", ["/w", "w", "a:b", "2026-11-24T10:00", "C:", "C:/w", "s3a", "/x/s3a:/b", "it's", "ü?#"]
)
def test_a_text_without_a_scheme_is_a_folder(text):
    assert Path(text) == address(text) == address(Path(text))


@pytest.mark.parametrize(
    ("text", "place", "table"),
    [
        ("s3a://b/x/y/", ObjectStore("s3", "b", "x/y"), "s3://b/x/y/groups"),
        ("s3://b", ObjectStore("s3", "b"), "s3://b/groups"),
        ("S3A://b//x", ObjectStore("s3", "b", "x"), "s3://b/x/groups"),
        ("gs://b/x", ObjectStore("gs", "b", "x"), "gs://b/x/groups"),
        ("abfss://c@a.dfs.core.windows.net/x", ObjectStore("abfss", "c@a.dfs.core.windows.net", "x"), "abfss://c@a.dfs.core.windows.net/x/groups"),
    ],
)  # fmt: skip
def test_an_address_names_a_path_below_a_bucket(text, place, table):
    assert place == address(text) == address(Path(text))
    assert place == address(str(place))
    assert table == place.url("groups")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hdfs://h/x", "an address of hdfs, which Regroup cannot read"),
        ("file:///x", "an address of file, which Regroup cannot read"),
        ("s3a://", "is not complete: write s3a://BUCKET/PATH"),
        ("abfss://account/x", "is not complete: write abfss://CONTAINER@ACCOUNT"),
        ("s3://name:hidden@b/x", "has a password, a port or a query"),
        ("s3://hidden@b/x", "has a password, a port or a query"),
        ("s3://b:9000/hidden", "has a password, a port or a query"),
        ("abfss://c@a/x?sig=hidden", "has a password, a port or a query"),
    ],
)
def test_another_address_is_refused_with_a_sentence_that_repeats_no_secret(text, sentence):
    with pytest.raises(ValueError, match=sentence) as refused:
        address(text)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("scheme", ["s3", "abfss", "gs"])
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Error performing token request: hidden", "there are no credentials. Set "),
        ("Error performing GET: 403 Forbidden <AWSAccessKeyId>hidden", "the store refuses these credentials. Check "),
        ("Error performing list request: 404 Not Found hidden", "there is no b. Check the address"),
        ("Object at location hidden not found: Error performing GET: 404 Not Found", "a file that a table's log names"),
        ("Error performing GET: hidden", "the store does not answer. Check "),
    ],
)
def test_an_error_of_a_store_becomes_a_sentence_without_its_text(scheme, text, sentence):
    found = str(store_error(ObjectStore(scheme, "b", "x"), OSError(text)))
    assert sentence in found
    assert "hidden" not in found
