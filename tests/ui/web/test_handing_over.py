"""Every setting of access control reaches every process that serves the pages: `up`, `serve` and the App."""

from __future__ import annotations

import io
import json
import os
import sys
import urllib.request
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from dashboards import app, databricks_app
from dashboards.lake.readers import Readers
from dashboards.teams import Teams
from dashboards.web.access import Access
from jobs import lake as lakes
from jobs import serve, up
from jobs.cli import main as regroup
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.pages import GUARDS, access
from testing import sample
from testing.waiting import wait_until

TOKEN = "a-token-of-some-length"
OTHER = {
    "proxies": "127.0.0.0/8",
    "header": "X-Who",
    "groups_header": "X-Whose",
    "readers": {"ann": ["billing-"], "@ops": [""], "gräfin": ["\u2028"]},
    "hosts": "regroup.example, ::",
    "address": "https://pages.example:8443/x",
}
"""A value other than the default for every field except the token."""
GUARDED = {
    "proxy": {GUARDS[name]: value for name, value in OTHER.items()},
    "token": {"pages_token": TOKEN, "readers": {"token": ["billing-"]}, "dashboard_url": "https://pages.example"},
    "many readers": {"trusted_proxies": "127.0.0.1", "readers": {f"r{n}" * 20: ["a" * 100] for n in range(5_000)}},
}


def test_every_field_of_the_guard_comes_from_a_setting_and_is_tried_here() -> None:
    names = {each.name for each in fields(Access)}
    assert names == set(GUARDS)
    assert names == {*OTHER, "token"}
    assert set(GUARDS.values()) <= {each.name for each in fields(Settings)}
    built, plain = Access.of(**OTHER), Access()
    assert names - {"token"} == {name for name in names if getattr(built, name) != getattr(plain, name)}


@pytest.fixture(params=GUARDED)
def settings(request, tmp_path) -> Settings:
    return Settings(warehouse=tmp_path / "w", port=0, **GUARDED[request.param])


def test_what_is_handed_over_is_the_whole_guard(settings) -> None:
    guarded = access(settings)
    assert guarded == Access.of_document(guarded.document())


class Started:
    """Stands in for a child process: keeps the command that `up` starts, its environment and its stdin."""

    def __init__(self, command, *, output, env=None, stdin_text="", **_) -> None:
        self.command, self.env, self.given = [str(each) for each in command], env, stdin_text

    def stop(self) -> None:
        pass


def test_up_gives_its_pages_the_guard_that_serve_has_and_no_argument_tells_of_it(settings, monkeypatch) -> None:
    monkeypatch.delenv("REGROUP_PAGES_TOKEN", raising=False)
    started: list[Started] = []
    monkeypatch.setattr(up, "Supervised", lambda *a, **k: started.append(Started(*a, **k)) or started[-1])
    with ExitStack() as stack:
        up._pages(settings, stack)
    (pages,) = started
    assert not [each for each in (TOKEN, "billing-", "X-Who", "127.0.0.0/8") if each in " ".join(pages.command)]

    served: list[Access] = []
    for module in (app, serve):
        monkeypatch.setattr(module, "serve", lambda *_, access, **__: served.append(access) or 0)
    monkeypatch.setattr(sys, "stdin", io.StringIO(pages.given))
    assert 0 == app.main(pages.command[pages.command.index("dashboards.app") + 1 :])
    assert 0 == serve.run(settings, None)
    assert [access(settings)] * 2 == served


@pytest.mark.parametrize("declared", [{}, {"grün": ["a-*", {"groups": "b\u2028", "clusters": "prod"}]}])
def test_every_process_with_pages_has_the_teams(tmp_path, monkeypatch, declared) -> None:
    monkeypatch.delenv("REGROUP_PAGES_TOKEN", raising=False)
    teams = Teams.of(declared)
    settings = Settings(warehouse=tmp_path / "w", port=0, teams=teams)
    started: list[Started] = []
    monkeypatch.setattr(up, "Supervised", lambda *a, **k: started.append(Started(*a, **k)) or started[-1])
    with ExitStack() as stack:
        up._pages(settings, stack)
    served: list[Teams] = []
    for module in (app, serve, databricks_app):
        monkeypatch.setattr(module, "serve", lambda *_, teams, **__: served.append(teams) or 0)
    monkeypatch.setattr(sys, "stdin", io.StringIO(started[0].given))
    assert 0 == app.main(started[0].command[started[0].command.index("dashboards.app") + 1 :])
    assert 0 == serve.run(settings, None)
    assert [teams] * 2 == served
    file = tmp_path / "teams.toml"
    file.write_text('[teams]\na = ["b-*"]\n')
    assert databricks_app.teams({"REGROUP_TEAMS": str(file)}) == Teams.of({"a": ["b-*"]})
    assert databricks_app.teams({}) == Teams()
    assert 0 == app.main(["--warehouse", str(tmp_path), "--teams", str(file)])
    assert served[-1] == Teams.of({"a": ["b-*"]})
    file.write_text('[teams]\na = ["["]\n')
    assert 2 == app.main(["--warehouse", str(tmp_path), "--teams", str(file)])


def test_the_app_decides_every_field_of_the_guard_itself(monkeypatch, tmp_path) -> None:
    (tmp_path / "readers.toml").write_text('[readers]\nann = ["billing-"]')
    declared: dict = {}
    monkeypatch.setattr(databricks_app.Access, "of", lambda **given: declared.update(given))
    databricks_app.access({"REGROUP_READERS": str(tmp_path / "readers.toml")})
    assert {each.name for each in fields(Access)} == set(declared)
    assert {"ann": ["billing-"]} == declared["readers"]


WHOLE = json.loads(Access.of(**OTHER).document())


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "null", "[]", "{}", "{", "[" * 100_000, "\ud800", "true",
        *(json.dumps({name: value for name, value in WHOLE.items() if name != left_out}) for left_out in WHOLE),
        *(json.dumps(WHOLE | {name: None}) for name in WHOLE),
        *(json.dumps(WHOLE | {name: 5}) for name in WHOLE),
        json.dumps(WHOLE | {"another": "guard"}),
        json.dumps(WHOLE | {"proxies": ","}),
        json.dumps(WHOLE | {"proxies": ""}),
        json.dumps(WHOLE | {"header": ""}),
        json.dumps(WHOLE | {"readers": {"ann": "billing-"}}),
    ],
)  # fmt: skip
def test_pages_do_not_start_with_a_guard_that_did_not_arrive_whole(tmp_path, monkeypatch, capsys, text) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    monkeypatch.setattr(app, "serve", lambda *_, **__: pytest.fail("it serves"))
    assert 2 == app.main(["--warehouse", str(tmp_path), "--access-on-stdin"])
    printed = capsys.readouterr().err
    assert 1 == printed.count("\n")
    assert "Traceback" not in printed


def test_a_guard_is_stated_in_one_way(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(Access().document()))
    command = ["--warehouse", str(tmp_path), "--access-on-stdin", "--trusted-proxies", "10.0.0.0/8"]
    assert 2 == app.main(command)
    assert "not both" in capsys.readouterr().err


def asked(address: str, **headers: str) -> str | int:
    """Return the groups that a search finds, or the status of an error; 0 while no server responds."""
    wanted = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{address}search?q=e", headers=wanted)) as response:
            return " ".join(sorted(each["label"] for each in json.load(response)["groups"]))
    except HTTPError as error:
        with error:
            return error.code
    except URLError:
        return 0


@pytest.fixture
def warehouse(tmp_path, now) -> Path:
    sample.write(tmp_path / "w", sample.everyday(now))
    return tmp_path / "w"


def test_the_pages_of_up_show_a_reader_the_groups_of_the_settings_and_nobody_else_any(warehouse, monkeypatch) -> None:
    monkeypatch.delenv("REGROUP_PAGES_TOKEN", raising=False)
    file = warehouse.parent / "regroup.toml"
    file.write_text(
        'trusted_proxies = "127.0.0.0/8"\nidentity_header = "X-Who"\ngroups_header = "X-Whose"\npages_hosts = "p.example"\n'
        '[readers]\nann = ["billing-"]\n"@ops" = [""]\ntoken = [""]\n'
    )
    settings = replace(Settings.load(file, {}), warehouse=warehouse, port=0)
    with ExitStack() as stack:
        address, _ = up._pages(settings, stack)
        wait_until(lambda: asked(address) != 0)
        assert "billing-worker" == asked(address, X_Who="ann")
        assert "" == asked(address, X_Who="eve") == asked(address, X_Who="token")
        assert "" == asked(address, X_Who="eve", X_Forwarded_Groups="ops")
        assert {"billing-worker", "payments-loader"} <= set(asked(address, X_Who="eve", X_Whose="ops").split())
        assert 401 == asked(address) == asked(address, X_Forwarded_User="ann")
        assert 403 == asked(address, X_Who="ann", Host="evil.example")
        assert "billing-worker" == asked(address, X_Who="ann", Host="p.example")
        assert "X-Who" not in everything_others_see(os.getpid())


def test_the_pages_of_up_ask_for_the_token_that_no_argument_and_no_environment_has(warehouse, monkeypatch) -> None:
    monkeypatch.delenv("REGROUP_PAGES_TOKEN", raising=False)
    (warehouse.parent / "token").write_text(f"{TOKEN}\n")
    settings = Settings(
        warehouse=warehouse, port=0, readers={"token": ["billing-"]}, pages_token=f"file:{warehouse.parent}/token"
    )
    with ExitStack() as stack:
        address, _ = up._pages(settings, stack)
        wait_until(lambda: asked(address) != 0)
        assert 401 == asked(address) == asked(address, X_Forwarded_User="token")
        assert "billing-worker" == asked(address, Authorization=f"Bearer {TOKEN}")
        assert TOKEN not in everything_others_see(os.getpid())


def everything_others_see(of: int) -> str:
    """Return the arguments and environments of all processes that this one has started."""
    found = ""
    for child in Path(f"/proc/{of}/task").glob("*/children"):
        for pid in child.read_text().split():
            folder = Path("/proc") / pid
            # A process that has ended has no environment, whether its parent has waited for it or not.
            with suppress(ProcessLookupError, FileNotFoundError):
                found += (folder / "cmdline").read_text() + (folder / "environ").read_text(errors="replace")
                found += everything_others_see(int(pid))
    return found


SECRETS = {
    "pages_token": 'pages_token = "{0}"',
    "client_host_key": 'client_host = "hash"\nclient_host_key = "{0}"',
    "token in [databricks]": '[databricks]\nserver_hostname = "w"\nhttp_path = "p"\ntables = "a.b"\ntoken = "{0}"',
    "client_secret in [databricks]": (
        '[databricks]\nserver_hostname = "w"\nhttp_path = "p"\ntables = "a.b"\nclient_id = "i"\nclient_secret = "{0}"'
    ),
    "sasl.password": '[clusters.c]\nbootstrap_servers = "b:1"\n[clusters.c.kafka]\n"sasl.password" = "{0}"',
}
RESOLVED = {
    "pages_token": access,
    "client_host_key": lambda settings: settings.hosts(),
    "token in [databricks]": lakes.lake,
    "client_secret in [databricks]": lakes.lake,
    "sasl.password": lambda settings: settings.only().client(),
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("content", ["", " ", "\n\t \n"])
@pytest.mark.parametrize("kind", ["env", "file"])
def test_a_reference_to_an_empty_secret_is_refused_with_a_sentence(tmp_path, monkeypatch, name, content, kind) -> None:
    monkeypatch.setenv("A_SECRET", content)
    (tmp_path / "secret").write_text(content)
    reference = "env:A_SECRET" if kind == "env" else f"file:{tmp_path}/secret"
    (tmp_path / "regroup.toml").write_text(SECRETS[name].format(reference))
    settings = Settings.load(tmp_path / "regroup.toml", {})
    with pytest.raises(UserError, match="refers to nothing"):
        RESOLVED[name](settings)


def test_a_secret_that_is_no_text_is_refused_with_a_sentence(tmp_path) -> None:
    (tmp_path / "secret").write_bytes(b"\xff" * 40)
    with pytest.raises(UserError, match="not UTF-8 text"):
        access(Settings(pages_token=f"file:{tmp_path}/secret"))


@pytest.mark.parametrize("value", ["", " ", "\t"])
@pytest.mark.parametrize("name", ["REGROUP_PAGES_TOKEN", "REGROUP_CLIENT_HOST_KEY", "REGROUP_TRUSTED_PROXIES"])
def test_an_empty_variable_takes_no_guard_away_that_the_file_names(tmp_path, monkeypatch, capsys, name, value) -> None:
    monkeypatch.setenv("A_TOKEN", TOKEN)
    monkeypatch.setenv(name, value)
    (tmp_path / "regroup.toml").write_text('pages_token = "env:A_TOKEN"')
    assert 2 == regroup(["serve", "--config", str(tmp_path / "regroup.toml"), "--warehouse", str(tmp_path)])
    assert f"{name} is empty" in capsys.readouterr().err


@pytest.mark.parametrize("text", ['pages_token = ""', 'pages_token = "  "', "[readers]", "readers = 0", "readers = []"])
def test_a_guard_that_is_written_down_and_empty_is_refused(tmp_path, text) -> None:
    (tmp_path / "regroup.toml").write_text(text)
    with pytest.raises(UserError, match=r"is empty|names nobody"):
        Settings.load(tmp_path / "regroup.toml", {})


@pytest.mark.parametrize("value", ["", "  ", "env:A_TOKEN_OF_SOME_LENGTH", "file:/run/secrets/regroup", "short"])
def test_pages_that_are_started_alone_refuse_a_token_that_guards_nothing(tmp_path, monkeypatch, capsys, value) -> None:
    monkeypatch.setenv("REGROUP_PAGES_TOKEN", value)
    monkeypatch.setattr(app, "serve", lambda *_, **__: pytest.fail("it serves"))
    assert 2 == app.main(["--warehouse", str(tmp_path)])
    assert "oken" in capsys.readouterr().err.replace("TOKEN", "token")


def test_a_list_of_readers_without_readers_is_refused(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("REGROUP_PAGES_TOKEN", raising=False)
    (tmp_path / "readers.toml").write_text("[reader]\nann = ['a']")
    command = ["--warehouse", str(tmp_path), "--trusted-proxies", "127.0.0.1", "--readers"]
    assert 2 == app.main([*command, str(tmp_path / "readers.toml")])
    assert "names no readers" in capsys.readouterr().err


def test_readers_are_equal_by_what_they_say() -> None:
    assert Readers({"a": ["b"]}) == Readers.of({"a": ["b"]})


def test_up_does_not_go_on_without_pages_that_refused_to_start(tmp_path) -> None:
    log = tmp_path / "pages.log"
    command = [sys.executable, "-c", "import sys; sys.exit('The readers are no table of prefixes.')"]
    refused = up.Supervised(command, output=log)
    refused.wait(120)
    with pytest.raises(UserError, match=r"The pages ended at once.*The readers are no table of prefixes"):
        up.refuse_ended(refused, log)
    refused.stop()
