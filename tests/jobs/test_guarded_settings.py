"""Settings that would run code, send tables into a folder by mistake, or show secrets to other users."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dashboards.app import main as pages
from jobs.cli import main
from jobs.config.code_options import ALLOWED
from jobs.config.errors import UserError
from jobs.config.permissions import exposed_to, warnings
from jobs.config.settings import Settings

STORES = {
    "s3a://bucket/x": "s3://bucket/x",
    "s3://b/x": "s3://b/x",
    "S3A://b/x": "s3://b/x",
    "abfss://c@a.dfs.example/x": "abfss://c@a.dfs.example/x",
    "gs://b/x": "gs://b/x",
}
"""Addresses of a warehouse, and the stores that they mean."""
UNKNOWN = ("hdfs://h/x", "file:///tmp/x", "dbfs:/x", "s3a://name:secret@bucket/x", "gs://")


def load(tmp_path, text: str, environment=None) -> Settings:
    file = tmp_path / "regroup.toml"
    file.write_text(text)
    return Settings.load(file, environment or {})


def with_option(tmp_path, key: str, value: str, environment=None) -> Settings:
    return load(
        tmp_path, f"[clusters.a]\nbootstrap_servers = 'x:1'\n[clusters.a.kafka]\n'{key}' = '''{value}'''", environment
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("plugin.library.paths", "/tmp/evil.so"),
        ("Plugin.Library.Paths", "/tmp/evil.so"),
        (" plugin.library.paths ", "/tmp/evil.so"),
        ("ssl.engine.location", "/tmp/evil.so"),
        ("ssl.engine.id", "evil"),
        ("ssl.providers", "evil"),
        ("sasl.kerberos.kinit.cmd", "touch /tmp/x"),
        ("sasl.kerberos.principal", "x; touch /tmp/x"),
        ("sasl.kerberos.principal", "x\ntouch /tmp/x"),
        ("sasl.kerberos.keytab", '"$(touch /tmp/x)"'),
        ("sasl.kerberos.service.name", "`touch /tmp/x`"),
    ],
)
def test_an_option_that_can_run_code_is_refused_unless_the_environment_allows_it(tmp_path, key, value) -> None:
    with pytest.raises(UserError, match="can run code on this machine") as refused:
        with_option(tmp_path, key, value)
    assert ALLOWED in str(refused.value)
    with pytest.raises(UserError):
        with_option(tmp_path, key, value, {ALLOWED: "1"})
    assert value == with_option(tmp_path, key, value, {ALLOWED: "true"}).only().client()[key]


def test_the_file_itself_cannot_allow_it(tmp_path) -> None:
    with pytest.raises(UserError, match="Unknown setting"):
        load(tmp_path, "allow_code_options = true")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.kerberos.principal", "regroup/host.example.com@EXAMPLE.COM"),
        ("sasl.kerberos.keytab", "/etc/security/regroup.keytab"),
        ("ssl.ca.location", "/etc/ssl/ca.pem"),
        ("sasl.password", "$(anything) at all; `it` never reaches a shell"),
    ],
)
def test_options_that_run_nothing_pass(tmp_path, key, value) -> None:
    assert value == with_option(tmp_path, key, value).only().client()[key]


def ways(tmp_path, place: str):
    """The functions that read a warehouse from a flag, the environment and the file."""
    return (
        lambda: Settings.load(None, {}, {"warehouse": Path(place)}),
        lambda: Settings.load(None, {"REGROUP_WAREHOUSE": place}),
        lambda: load(tmp_path, f"warehouse = '{place}'"),
    )


@pytest.mark.parametrize(("place", "store"), STORES.items())
def test_an_address_is_the_same_warehouse_wherever_it_comes_from(tmp_path, place, store) -> None:
    for way in ways(tmp_path, place):
        found = way()
        assert (place, store) == (found.warehouse_text, str(found.address))
    assert Settings.load(None, {}, {"warehouse": tmp_path}).address is None


@pytest.mark.parametrize("place", UNKNOWN)
def test_an_address_that_cannot_be_a_warehouse_is_refused_everywhere(tmp_path, place, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for way in ways(tmp_path, place):
        with pytest.raises(UserError, match=r"^The warehouse('s address)? "):
            way()
    for command in ("serve", "doctor", "build", "replay x", "quality", "up"):
        assert 2 == main([*command.split(), "--warehouse", place])
    printed = capsys.readouterr().err.splitlines()
    assert 6 == len(printed)
    assert not any("secret" in line for line in printed)
    assert [tmp_path / "regroup.toml"] == list(tmp_path.iterdir())


@pytest.mark.parametrize("address", ["hdfs://h/x", "file:///tmp/x", "s3a://name:secret@bucket/x", "gs://"])
def test_pages_refuse_an_address_that_they_cannot_read(tmp_path, address, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert 2 == pages(["--warehouse", address, "--port", "0"])
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith("The warehouse")
    assert "secret" not in printed
    assert [] == list(tmp_path.iterdir())


def test_a_folder_with_a_colon_is_a_warehouse(tmp_path) -> None:
    for name in (tmp_path / "a:b", "2026-11-24T10:00", "C:"):
        Settings.load(None, {}, {"warehouse": str(name)})


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may enter. pytest makes its own this user's alone again whenever another run starts."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    ("mode", "printed"),
    [
        (0o755, "read by everybody"),
        (0o750, "read by the group"),
        (0o777, "changed by everybody"),
        (0o770, "changed by the group"),
        (0o700, None),
    ],
)
def test_a_warehouse_that_others_can_read_is_named(shared, mode, printed) -> None:
    warehouse = shared / "warehouse"
    warehouse.mkdir()
    warehouse.chmod(mode)
    found = list(warnings(None, Settings(warehouse=warehouse)))
    assert [printed is not None] == [bool(found)] if printed else [] == found
    assert printed is None or printed in found[0]
    shared.chmod(0o700)
    assert None is exposed_to(warehouse), "a folder above it hides it"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("pages_token = 'a-token-of-some-length'", "pages_token"),
        ("[clusters.a]\nbootstrap_servers = 'x'\n[clusters.a.kafka]\n'sasl.password' = 'hunter2'", "sasl.password"),
        ("pages_token = 'env:TOKEN'", None),
        ("[clusters.a]\nbootstrap_servers = 'x'\n[clusters.a.kafka]\n'sasl.password' = 'file:/x'", None),
        ("port = 1", None),
    ],
)
def test_a_settings_file_with_secrets_that_others_can_read_is_named(shared, text, named) -> None:
    # Not the default warehouse, which `up` may have created in this checkout.
    file, settings = shared / "regroup.toml", load(shared, f"warehouse = '{shared / 'warehouse'}'\n{text}")
    file.chmod(0o644)
    found = list(warnings(file, settings))
    assert (named is not None) == bool(found)
    assert named is None or (named in found[0] and "chmod 600" in found[0])
    assert not any("hunter2" in each or "some-length" in each for each in found)
    file.chmod(0o600)
    assert [] == list(warnings(file, settings))


def test_a_job_warns_at_its_start_and_doctor_too(shared) -> None:
    warehouse = shared / "warehouse"
    warehouse.mkdir(mode=0o755)
    warehouse.chmod(0o755)
    for command, stream in (("rebuild", "stderr"), ("doctor", "stdout")):
        run = [sys.executable, "-P", "-m", "jobs.cli", command, "--warehouse", str(warehouse)]
        printed = subprocess.run(run, check=False, capture_output=True, text=True)
        assert 1 == getattr(printed, stream).count("can be read by everybody"), printed
        assert "Traceback" not in printed.stderr
