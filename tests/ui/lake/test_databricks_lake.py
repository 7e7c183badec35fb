"""A lake behind a Databricks SQL warehouse: its statements, its cache, its error messages and its sign-in."""

from __future__ import annotations

import inspect
import json
import shutil
import ssl
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from databricks import sql as connector
from databricks.sql import client, exc
from databricks.sql import session as connector_session
from deltalake import DeltaTable

from dashboards.app import page
from dashboards.lake import service_principal
from dashboards.lake.databricks_connection import Connections, options
from dashboards.lake.databricks_tables import lake
from dashboards.lake.databricks_versions import SCHEMA_SECONDS
from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.lake.lake import LakeError
from dashboards.lake.service_principal import ServicePrincipal
from dashboards.queries.store import Store
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY
from testing import sample
from tests.ui.lake.databricks import Databricks, DuckEngine
from tests.ui.reading import words

GROUPS = "SELECT cluster, group_id FROM groups ORDER BY group_id LIMIT $cap"
SECRET = "a secret of some length"


@pytest.fixture
def databricks(tmp_path, now) -> Databricks:
    sample.write(tmp_path, sample.merge({}, sample.static(now), sample.nightly(now)))
    return Databricks(DuckEngine(tmp_path))


def described(lake, cap: int = 10) -> list[str]:
    return [row["group_id"] for row in lake.query(GROUPS, ["groups"], cap, {}).rows]


def test_the_connector_has_what_is_called(warehouse) -> None:
    inspect.signature(client.Connection.cursor).bind(None)
    inspect.signature(client.Cursor.execute).bind(None, "SELECT :p_a", parameters={"p_a": 1})
    inspect.signature(client.Cursor.fetchall_arrow).bind(None)
    assert {"__enter__", "__exit__"} <= set(dir(client.Cursor))
    assert "close" in dir(client.Connection)
    assert issubclass(exc.ServerOperationError, exc.DatabaseError)
    source = inspect.getsource(client) + inspect.getsource(connector_session)
    for found in (known(token="t"), known(client_id="id", client_secret=SECRET)):
        declared = options(found)
        inspect.signature(connector.connect).bind(**declared)
        inspect.signature(client.Connection.__init__).bind(None, **declared)
        assert all(f'"{key}"' in source or f"{key}:" in source for key in declared if key != "credentials_provider")


def known(**who: str) -> Warehouse:
    return Warehouse(
        server_hostname="https://w.invalid/", http_path="/sql/1.0/warehouses/1", tables="main.regroup", **who
    )


def test_a_secret_is_in_no_representation() -> None:
    assert SECRET not in repr(known(client_id="id", client_secret=SECRET))
    assert SECRET not in repr(known(token=SECRET))
    assert "w.invalid" == options(known(token=SECRET))["server_hostname"]


def test_a_question_is_one_statement_until_a_table_has_changed(databricks, tmp_path, now) -> None:
    lake = databricks.lake(fresh_seconds=0)
    first = lake.query(GROUPS, ["groups"], 10, {})
    assert lake.query(GROUPS, ["groups"], 10, {}) is first
    assert 1 == len(databricks.questions)
    sample.write(tmp_path, sample.stuck(now))
    assert ["nightly-report", "payments-loader", "pricing-static"] == described(lake)
    assert [text.count("VERSION AS OF 1") for text, _ in databricks.questions] == [0, 1]


def test_an_answer_is_capped_and_says_so(databricks) -> None:
    lake = databricks.lake()
    assert (["nightly-report"], True) == (described(lake, 1), lake.query(GROUPS, ["groups"], 1, {}).is_capped)
    assert not lake.query(GROUPS, ["groups"], 2, {}).is_capped
    assert [2, 3] == [given["p_cap"] for _, given in databricks.questions]


def test_a_table_that_is_not_there_is_not_asked_of(databricks, tmp_path) -> None:
    shutil.rmtree(tmp_path / "groups")
    assert [] == described(databricks.lake())
    assert [] == databricks.questions


def test_a_version_that_is_gone_is_looked_up_again(databricks, tmp_path, now) -> None:
    sample.write(tmp_path, sample.stuck(now))
    lake = databricks.lake()
    assert 1 == lake.versions()["groups"]
    shutil.rmtree(tmp_path / "groups")
    sample.write(tmp_path, {"groups": sample.stuck(now)["groups"]})
    assert ["payments-loader"] == described(lake)


def test_a_table_of_a_newer_regroup_is_named_within_minutes(databricks, tmp_path, monkeypatch) -> None:
    lake, clock = databricks.lake(fresh_seconds=0), [1000.0]
    monkeypatch.setattr("dashboards.lake.databricks_versions.monotonic", lambda: clock[0])
    assert described(lake)
    newer = {VERSION_PROPERTY: str(SCHEMA_VERSION + 1)}
    DeltaTable(tmp_path / "groups").alter.set_table_properties(newer, raise_if_not_exists=False)
    assert described(lake)
    clock[0] += SCHEMA_SECONDS
    with pytest.raises(LakeError, match="The table groups was written by a newer Regroup than these pages"):
        described(lake)


def test_a_look_at_the_versions_holds_nobody_up_who_has_seen_some(databricks, monkeypatch) -> None:
    lake, clock = databricks.lake(fresh_seconds=10), [1000.0]
    monkeypatch.setattr("dashboards.lake.databricks_versions.monotonic", lambda: clock[0])
    lake.versions()
    seen, began, gate = len(databricks.asked), threading.Event(), threading.Event()
    response = databricks.engine.response
    monkeypatch.setattr(
        databricks.engine, "response", lambda *given: began.set() or (gate.wait(120) and response(*given))
    )
    clock[0] += 9
    lake.versions()
    assert seen == len(databricks.asked), "looked at just now"
    clock[0] += 2
    assert lake.versions(), "while another look is under way"
    assert began.wait(120)
    gate.set()


def test_connections_are_used_again_and_a_broken_one_is_opened_anew(databricks, monkeypatch) -> None:
    connections = Connections(known(token="t"), databricks.connect)
    ask = lambda: connections.ask("SELECT 1 AS a", {}).to_pylist()  # noqa: E731
    assert ask() == ask() == [{"a": 1}]
    (first,) = databricks.opened
    monkeypatch.setattr(first, "cursor", lambda: fail(exc.RequestError("Invalid SessionHandle")))
    assert [{"a": 1}] == ask()
    assert (2, True) == (len(databricks.opened), first.is_closed)


def fail(error: Exception):
    raise error


REFUSED = [
    (exc.ServerOperationError("[INSUFFICIENT_PERMISSIONS] Insufficient privileges: SELECT 'x'"), "does not let the pages read main.regroup"),
    (exc.ServerOperationError("[SCHEMA_NOT_FOUND] The schema `regroup` cannot be found"), "has no schema main.regroup"),
    (exc.ServerOperationError("[DIVIDE_BY_ZERO] 'x'"), "could not run a query"),
    (exc.RequestError("Error during request", {"http-code": 403}), "rejects the credentials (HTTP 403)"),
    (exc.RequestError("Error during request", {"http-code": 404}), "no SQL warehouse at /sql/1.0/warehouses/"),
    (exc.RequestError("Error during request", {"http-code": None}), "does not respond: it may be starting"),
    (OSError("Name or service not known 'x'"), "does not respond: it may be starting"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "printed"), REFUSED)
def test_what_goes_wrong_is_one_sentence_on_the_page(databricks, monkeypatch, now, caplog, error, printed) -> None:
    monkeypatch.setattr(databricks.engine, "response", lambda *_: fail(error))
    for path in ("/", "/health", "/storms"):
        text = words(page(Store(databricks.lake()), path, "", None, now)[0])
        assert printed in text
        assert "'x'" not in text
    assert str(error) in caplog.text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """A certificate of 127.0.0.1 and its key, in one file."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "workspace")]),
    )
    began = datetime.now(UTC) - timedelta(minutes=5)
    host = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), began, began + timedelta(days=1)
        )
        .add_extension(host, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("workspace") / "certificate.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.mark.parametrize(
    ("status", "printed"), [(401, "HTTP 401"), (403, "HTTP 403"), (404, "no SQL warehouse"), (503, "may be starting"), (0, "may be starting")]
)  # fmt: skip
def test_the_real_connector_is_refused_in_these_ways(certificate, status, printed) -> None:
    handler = type("Handler", (Tokens,), {"asked": [], "status": status})
    secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secured.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = secured.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        local = {"_port": server.server_port, "_tls_trusted_ca_file": str(certificate)}
        if not status:
            server.shutdown()
            server.server_close()
        found = replace(known(token=SECRET), server_hostname="127.0.0.1")
        quick = {"_retry_stop_after_attempts_duration": 1}
        connections = Connections(found, lambda known: connector.connect(**options(known) | local | quick))
        with pytest.raises(LakeError, match=printed) as caught:
            connections.ask("SELECT 1", {})
        assert SECRET not in str(caught.value)
        if status:
            assert {("/sql/1.0/warehouses/1", "Bearer", SECRET)} == {
                (a["path"], a["kind"], a["who"]) for a in handler.asked
            }
            server.shutdown()


def test_after_an_error_the_tables_are_read_again(databricks, monkeypatch) -> None:
    lake, response = databricks.lake(fresh_seconds=0), databricks.engine.response
    monkeypatch.setattr(databricks.engine, "response", lambda *_: fail(OSError("gone")))
    with pytest.raises(LakeError):
        described(lake)
    monkeypatch.setattr(databricks.engine, "response", response)
    assert ["nightly-report", "pricing-static"] == described(lake)


def test_without_its_packages_one_sentence_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sql", None)
    with pytest.raises(LakeError, match=r"install Regroup with its extra, regroup\[databricks\]"):
        lake(known(token="t"))


class Tokens(BaseHTTPRequestHandler):
    """A workspace's token endpoint; `asked` has the request bodies, `status` is that of the response."""

    asked: list[dict[str, list[str]]]
    status: int

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode("latin-1"))
        kind, _, who = self.headers["Authorization"].partition(" ")
        known = b64decode(who).decode() if kind == "Basic" else who
        self.asked.append(body | {"path": self.path, "kind": kind, "who": known})
        described = json.dumps({"access_token": f"token {len(self.asked)}", "expires_in": 3600}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(described)))
        self.end_headers()
        self.wfile.write(described)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def tokens() -> Iterator[type[Tokens]]:
    handler = type("Handler", (Tokens,), {"asked": [], "status": 200})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        handler.url = f"http://127.0.0.1:{server.server_port}/oidc/v1/token"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield handler
        server.shutdown()


def test_a_service_principal_gets_a_token_and_a_new_one_before_it_ends(tokens, monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(service_principal, "monotonic", lambda: clock[0])
    principal = ServicePrincipal(tokens.url, "id", SECRET)
    assert principal.headers() == principal.headers() == {"Authorization": "Bearer token 1"}
    clock[0] += 3600 - 30
    assert {"Authorization": "Bearer token 2"} == principal.headers()
    assert {"grant_type": ["client_credentials"], "scope": ["all-apis"], "path": "/oidc/v1/token", "kind": "Basic",
            "who": f"id:{SECRET}"} == tokens.asked[0]  # fmt: skip


def test_a_refused_or_absent_token_is_one_sentence_without_the_secret(tokens) -> None:
    tokens.status = 401
    for url, printed in (
        (tokens.url, r"no token \(HTTP 401\)"),
        ("http://127.0.0.1:9/oidc/v1/token", "No token could be obtained"),
    ):
        with pytest.raises(LakeError, match=printed) as caught:
            ServicePrincipal(url, "id", SECRET).headers()
        assert SECRET not in str(caught.value)
