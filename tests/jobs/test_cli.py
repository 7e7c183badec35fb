"""A foreseeable mistake is one sentence on stderr and exit code 2, never a traceback."""

from __future__ import annotations

import errno
import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from jobs import cli
from jobs.cli import main, parser
from jobs.config.clusters import Cluster
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from pipelines.event_sources import Claim, EventSource


@pytest.fixture
def sentence(capsys):
    def run(*arguments: str) -> str:
        assert main(list(arguments)) == 2
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1
        assert "Traceback" not in printed
        return printed

    return run


def test_a_capture_that_is_none_is_named(sentence, tmp_path) -> None:
    assert f"{tmp_path} is not a capture folder" in sentence(
        "replay", str(tmp_path), "--warehouse", str(tmp_path / "w")
    )


def test_a_capture_of_another_format_is_named(sentence, tmp_path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"format": 9}))
    assert "format 9" in sentence("replay", str(tmp_path), "--warehouse", str(tmp_path / "w"))


def test_an_unknown_source_lists_the_known_ones(sentence, tmp_path) -> None:
    assert "offsets, log, admin" in sentence("replay", str(tmp_path), "--sources", "offset")


def test_a_warehouse_without_tables_says_what_to_run_first(sentence, tmp_path) -> None:
    assert "ingest" in sentence("rebuild", "--warehouse", str(tmp_path))


def test_a_missing_settings_file_is_named(sentence, tmp_path) -> None:
    assert "absent.toml" in sentence("doctor", "--config", str(tmp_path / "absent.toml"))


def test_ingest_without_a_cluster_says_how_to_name_one(sentence, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("jobs.ingest.session_of", lambda *_, **__: None)
    assert "--bootstrap-servers" in sentence("ingest", "--once", "--warehouse", str(tmp_path))


def test_a_full_disk_is_named(sentence, tmp_path, monkeypatch) -> None:
    def full(*_) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cli, "_command", lambda _: full)
    assert f"No space is left on the disk of {tmp_path}" in sentence("doctor", "--warehouse", str(tmp_path))


@pytest.fixture
def closed(tmp_path, monkeypatch):
    """The warehouse of another user. As root, the tests may read everything, so its folder only seems closed."""
    warehouse, access, read_text = tmp_path / "closed" / "w", os.access, Path.read_text
    refused = warehouse.parent, os.W_OK

    def refuse(path: Path, *args, **kwargs) -> str:
        if warehouse in path.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read_text(path, *args, **kwargs)

    warehouse.parent.mkdir()
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: access(path, mode) and (Path(path), mode) != refused)
    return warehouse


@pytest.mark.parametrize("command", [["why", "g"], ["health"], ["ingest"], ["poll"], ["maintain"], ["notify"]])
def test_a_warehouse_that_may_not_be_read_is_named(sentence, closed, command) -> None:
    assert f"The warehouse {closed} cannot be read (Permission denied): let" in sentence(
        *command, "--warehouse", str(closed)
    )


def test_commands_without_tables_need_no_warehouse_that_may_be_read(closed, monkeypatch) -> None:
    monkeypatch.setattr(cli, "_command", lambda _: lambda settings, args: 0)
    assert 0 == main(["decode", "--warehouse", str(closed)])
    assert 0 == main(["ship-logs", "server.log", "--warehouse", str(closed)])


def test_doctor_reports_a_warehouse_that_may_not_be_read(closed, capsys) -> None:
    main(["doctor", "--warehouse", str(closed)])
    printed = capsys.readouterr().out
    assert f"MISSING   warehouse: {closed} cannot be written" in printed
    assert f"Make {closed.parent} writable for this user, or name another folder with --warehouse." in printed


@pytest.mark.parametrize("below", [".", "warehouse"])
@pytest.mark.parametrize("command", [["why", "g"], ["health"], ["ingest"], ["build"], ["serve"], ["maintain"]])
def test_a_warehouse_that_is_a_file_is_named(sentence, tmp_path, below, command) -> None:
    (tmp_path / "file").write_text("mine")
    warehouse = tmp_path / "file" / below
    assert f"The warehouse {warehouse} cannot be a folder, because a file has its name" in sentence(
        *command, "--warehouse", str(warehouse)
    )


def test_doctor_reports_a_warehouse_that_is_a_file(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    main(["doctor", "--warehouse", str(tmp_path / "file")])
    assert f"{tmp_path / 'file'} is a file: name another folder with --warehouse." in capsys.readouterr().out


def test_every_command_has_help() -> None:
    commands = next(a for a in parser()._actions if a.dest == "command").choices
    assert set(commands) >= {
        "up",
        "ingest",
        "build",
        "replay",
        "rebuild",
        "copy",
        "serve",
        "lab",
        "doctor",
        "capture",
        "ship-logs",
    }
    assert all(command.format_help() for command in commands.values())


SOURCE = '[clusters.a]\nbootstrap_servers = "x:1"\n[[clusters.a.event_sources]]\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('quite_ms = 5\n[clusters.a]\nbootstrap_servers = "x:1"', "did you mean quiet_ms?"),
        ('[clusters.a]\nbootstrap_server = "x:1"', "did you mean bootstrap_servers?"),
        ("[clusters.a]\n", "has no bootstrap_servers"),
        ('port = "many"', "must be int"),
        ("port = ", "not valid TOML"),
        ('[clusters.a]\nbootstrap_servers = "x:1"\nevents_zone = "Mars"', "no time zone 'Mars'"),
        ('[clusters.a]\nbootstrap_servers = "x:1"\nevents_layout = "%q"', "%q, which is not known"),
        ('[clusters.a]\nbootstrap_servers = "x:1"\n[[clusters.a.logs]]\nfile = "a"', "clusters.a.logs]] has no path"),
        (SOURCE + 'header = "a=b"', "clusters.a.event_sources]] has no topic"),
        (SOURCE + 'topic = "t"\nheader = "a"', 'header must be "NAME=VALUE", but is'),
        (SOURCE + 'topic = "t"\nbrokers = ["1"]', "brokers must be a list of broker ids"),
        (
            SOURCE + 'topic = "t"\nkinds = ["marks"]',
            "kinds must be a list of coordinator, controller, connect, mark, kubernetes, client_metrics",
        ),
        (SOURCE + 'topic = "t"\nbroker = [1]', "did you mean brokers?"),
        ('[clusters.a]\nbootstrap_servers = "x:1"\nevents_max_message_bytes = 0', "must be at least 1 byte"),
        ('client_host = "hide"', "must be keep, truncate, hash, but is 'hide'"),
        ('client_host = "hash"', "must refer to the key"),
        ('client_host_key = "hunter2"', "must refer to the key"),
        ('warehouse = ""', "warehouse is empty: name a folder or an address"),
        ('warehouse = "  "', "warehouse is empty: name a folder or an address"),
        ("notify_seconds = 0", "notify_seconds must be float from 1 to"),
        ("analyze_seconds = 0.0", "analyze_seconds must be float from 1 to"),
        ("quality_seconds = 0", "quality_seconds must be float from 1 to"),
        ("maintain_seconds = 0", "maintain_seconds must be float from 1 to"),
        ("stale_seconds = 0", "stale_seconds must be float from 1 to"),
        ("stuck_seconds = 0", "stuck_seconds must be float from 1 to"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_nearest_right_one(tmp_path, text, expected) -> None:
    file = tmp_path / "regroup.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=expected.replace("?", r"\?")):
        Settings.load(file, {})


def test_sources_bind_topics_and_headers_to_brokers_and_kinds(tmp_path) -> None:
    file = tmp_path / "regroup.toml"
    file.write_text(
        SOURCE + 'topic = "b1"\nheader = "from=b1"\nbrokers = [1]\nkinds = ["coordinator"]\n'
        '[[clusters.a.event_sources]]\ntopic = "b2"\n[[clusters.a.event_sources]]\ntopic = "b1"'
    )
    cluster = Settings.load(file, {}).only()
    first = EventSource(topic="b1", header="from=b1", brokers=(1,), kinds=(Claim.COORDINATOR,))
    assert (first, EventSource(topic="b2"), EventSource(topic="b1")) == cluster.event_sources
    assert ["b1", "b2"] == cluster.event_topics()
    assert ["regroup-events"] == Cluster(name="a", bootstrap_servers="x:1").event_topics()


@pytest.mark.parametrize(("flags", "expected"), [({}, ".regroup/warehouse"), ({"warehouse": "w"}, "w")])
def test_a_warehouse_is_always_an_absolute_path(flags, expected) -> None:
    assert Path.cwd() / expected == Settings.load(None, {}, flags).warehouse


def test_an_empty_flag_does_not_mean_the_current_folder(sentence) -> None:
    assert "warehouse is empty: name a folder or an address" in sentence("doctor", "--warehouse", "")


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path) -> None:
    file = tmp_path / "regroup.toml"
    file.write_text('port = 1\nquiet_ms = 1\ntrigger_seconds = 1\n[clusters.a]\nbootstrap_servers = "x:1"')
    given = Settings.load(file, {"REGROUP_PORT": "2", "REGROUP_QUIET_MS": "2"}, {"port": 3})
    assert (3, 2, 1.0) == (given.port, given.quiet_ms, given.trigger_seconds)


def test_a_secret_is_a_reference_and_is_never_printed(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    file = tmp_path / "regroup.toml"
    file.write_text(
        '[clusters.a]\nbootstrap_servers = "x:1"\n[clusters.a.kafka]\n"sasl.password" = "env:KAFKA_PASSWORD"'
    )
    cluster = Settings.load(file, {}).only()
    assert "hunter2" == cluster.client()["sasl.password"]
    assert "hunter2" not in repr(cluster)


def test_a_key_that_is_not_there_is_reported_before_anything_is_written(tmp_path, monkeypatch, capsys) -> None:
    file = tmp_path / "regroup.toml"
    file.write_text('client_host = "hash"\nclient_host_key = "env:HOST_KEY"')
    monkeypatch.delenv("HOST_KEY", raising=False)
    command = ["replay", "--config", str(file), "--warehouse", str(tmp_path / "w")]
    assert cli.main([*command, str(tmp_path / "capture")]) == 2
    assert "client_host_key refers to the environment variable HOST_KEY, which is not set" in capsys.readouterr().err
    monkeypatch.setenv("HOST_KEY", "")
    assert cli.main([*command, str(tmp_path / "capture")]) == 2
    assert "client_host_key refers to nothing" in capsys.readouterr().err
    monkeypatch.setenv("HOST_KEY", "hunter2")
    settings = Settings.load(file, {})
    assert settings.hosts().key == b"hunter2"
    assert "hunter2" in settings.secrets()
    assert "hunter2" not in repr((settings, settings.hosts()))


@pytest.mark.parametrize(("code", "raised"), [(0, None), (1, 1), (2, 2)])
def test_a_job_that_failed_on_databricks_fails_there(monkeypatch, code, raised) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "18")
    monkeypatch.setattr(cli, "main", lambda: code)
    with pytest.raises(SystemExit) if raised else nullcontext() as ended:
        cli.program()
    assert raised == (ended.value.code if ended else None)
