"""Queries of a warehouse in an object store, a real S3 server, give the results of the same warehouse in a folder."""

from __future__ import annotations

import json
import socket
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from dashboards.lake import store_source
from dashboards.lake.address import ObjectStore
from dashboards.lake.lake import TABLES, LakeError, LocalLake
from dashboards.queries.store import Store
from testing.object_store import object_store
from testing.serving import serving
from testing.warehouses import recorded
from tests.ui.lake.conftest import READERS, assert_same

BUCKET = "warehouses"


@pytest.fixture(scope="module")
def server():
    with object_store() as running, pytest.MonkeyPatch.context() as patched:
        for name, value in running.environment.items():
            patched.setenv(name, value)
        yield running


def stored(server, folder, path) -> ObjectStore:
    server.copy(folder, BUCKET, path)
    return ObjectStore("s3", BUCKET, path)


def everything(lake):
    return [(f"SELECT * FROM {t.name} LIMIT $cap", (t.name,), 500, {}) for t in TABLES if t.name in lake.versions()]


def test_every_question_of_the_pages_has_the_same_answer(server, folder, asked):
    lake = LocalLake(stored(server, folder, "of/the/sample"))
    assert LocalLake(folder).versions() == lake.versions()
    assert lake.versions().keys() == lake.changed_at().keys()
    lake.warm()
    questions = [(sql, *question) for sql, found in asked.items() for question in found[:1]]
    assert assert_same(folder, lake, questions, None) > 0.8 * len(questions)
    assert_same(folder, lake, [*questions[::4], *everything(lake)], READERS[0])


def test_files_read_in_ranges_have_the_same_rows(server, tmp_path, monkeypatch):
    monkeypatch.setattr(store_source, "SMALL_BYTES", 0)
    recorded.write(tmp_path)
    place = stored(server, tmp_path, "recorded")
    lake = LocalLake(place)
    assert_same(tmp_path, lake, everything(lake), None)
    groups = {
        (row["cluster"], row["group_id"])
        for row in LocalLake(tmp_path).query(*everything(lake)[0]).rows
        if "group_id" in row
    }
    folder, remote = Store(LocalLake(tmp_path)), Store(lake)
    span = folder.span()
    assert span
    assert span == remote.span()
    assert [folder.group(*each) for each in sorted(groups)] == [remote.group(*each) for each in sorted(groups)]


def groups(*ids, **more):
    return pa.table({"cluster": ["c"] * len(ids), "group_id": list(ids)} | {k: [v] * len(ids) for k, v in more.items()})


GROUPS = ("SELECT group_id, member_count FROM groups ORDER BY group_id LIMIT $cap", ["groups"], 10, {})


def ids(lake):
    return [tuple(row.values()) for row in lake.query(*GROUPS).rows]


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_newer_versions_and_columns_are_seen_and_deleted_files_looked_for_again(
    server, tmp_path, monkeypatch, small_bytes
):
    monkeypatch.setattr(store_source, "SMALL_BYTES", small_bytes)
    place = stored(server, sample_of(tmp_path, "old"), f"changing/{small_bytes}")
    lake, patient = LocalLake(place, fresh_seconds=0), LocalLake(place, fresh_seconds=3600)
    assert [("old", None)] == ids(lake)
    assert {"groups": 1} == patient.versions()
    write_deltalake(
        place.url("groups"), groups("new", member_count=pa.scalar(3, pa.int32())), mode="append", schema_mode="merge"
    )
    assert [("new", 3), ("old", None)] == ids(lake)
    table = DeltaTable(place.url("groups"))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert [("new", 3), ("old", None)] == ids(lake)
    assert [("new", 3), ("old", None)] == ids(patient)
    server.files.delete_dir(f"{BUCKET}/{place.path}/groups")
    assert ([], {}) == (ids(LocalLake(place)), LocalLake(place).versions())


def sample_of(folder, *ids):
    """A table whose files lack a column that the table has."""
    write_deltalake(folder / "groups", groups(*ids))
    DeltaTable(folder / "groups").alter.add_columns([Field("member_count", PrimitiveType("integer"))])
    return folder


def test_a_table_with_deletion_vectors_is_refused_with_a_sentence(server, tmp_path):
    write_deltalake(tmp_path / "groups", groups("g"))
    log = tmp_path / "groups" / "_delta_log" / "00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
    log.write_text("\n".join(json.dumps({"protocol": features} if "protocol" in line else line) for line in lines))
    with pytest.raises(LakeError, match="The table groups uses deletion vectors"):
        LocalLake(stored(server, tmp_path, "vectors")).query(*GROUPS)


def test_pages_are_served_from_an_object_store(server, folder):
    place = str(stored(server, folder, "served")).replace("s3://", "s3a://")
    with serving(place) as address:
        callbacks = json.loads(urlopen(f"{address}/_dash-dependencies").read())
        output = next(each["output"] for each in callbacks if "seen.data" in each["output"])
        given = {"pathname": "/", "search": "?from=all", "n_intervals": 1}
        question = {
            "output": output,
            "outputs": [dict(zip(("id", "property"), each.rsplit(".", 1), strict=True)) for each in output.strip(".").split("...")],
            "inputs": [{"id": i, "property": p, "value": given[p]} for i, p in (("url", "pathname"), ("url", "search"), ("tick", "n_intervals"))],
            "state": [{"id": "seen", "property": "data", "value": None}],
            "changedPropIds": [],
        }  # fmt: skip
        headers = {"Content-Type": "application/json"}
        page = urlopen(Request(f"{address}/_dash-update-component", json.dumps(question).encode(), headers)).read()
        assert b"billing-worker" in page
        assert b"Something went wrong" not in page
        found = urlopen(f"{address}/search?q=billing").read()
        assert b"billing-worker" in found


def test_pages_that_end_while_they_read_an_object_store_end_normally(server, folder):
    place = str(stored(server, folder, "ended"))
    for number in range(3):
        with serving(place) as address, socket.create_connection(address.removeprefix("http://").split(":")) as asking:
            asking.sendall(f"GET /search?q=billing{number} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())


@pytest.mark.parametrize(
    ("bucket", "variables", "sentence"),
    [
        ("nowhere", {}, r"there is no nowhere\. Check the address given with --warehouse\."),
        (BUCKET, {"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "the store refuses these credentials. Check AWS_ACCESS_KEY_ID"),
        (BUCKET, {"AWS_SECRET_ACCESS_KEY": "not-the-secret"}, "the store refuses these credentials"),
        (BUCKET, {"AWS_ALLOW_HTTP": "false"}, "its endpoint is http://. Use https://, or set AWS_ALLOW_HTTP=true"),
        (BUCKET, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "the store does not answer. Check AWS_ENDPOINT_URL"),
    ],
)
def test_a_store_that_cannot_be_read_is_explained_without_credentials(
    server, tmp_path, monkeypatch, bucket, variables, sentence
):
    stored(server, sample_of(tmp_path, "g"), "refused")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    lake = LocalLake(ObjectStore("s3", bucket, "refused"))
    for ask in (lake.versions, lake.warm, lambda: lake.query(*GROUPS)):
        with pytest.raises(LakeError, match=sentence) as raised:
            ask()
        assert raised.value.__suppress_context__
        assert not any(
            secret in str(raised.value) for secret in (server.key, server.secret, *map(str, variables.values()))
        )


def test_a_server_that_goes_away_is_explained(tmp_path, monkeypatch):
    with object_store() as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        lake = LocalLake(stored(running, sample_of(tmp_path, "g"), "gone"), fresh_seconds=0)
        assert [("g", None)] == ids(lake)
        running.process.terminate()
        running.process.wait()
        with pytest.raises(LakeError, match="the store does not answer"):
            ids(lake)
