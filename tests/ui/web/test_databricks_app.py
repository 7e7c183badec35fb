"""The pages as a Databricks App: what is uploaded fits together, who is let in, and what they see."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from ruamel.yaml import YAML

from dashboards import databricks_app
from dashboards.app import create_app
from dashboards.lake.lake import LakeError
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.lake import lake as lake_of_settings
from jobs.setup.locked_packages import LockedPackages
from testing import sample

ROOT = Path(__file__).parents[3]
APP = ROOT / "dashboards" / "regroup.app.yml"
ENVIRONMENT = {
    "DATABRICKS_HOST": "workspace.invalid",
    "DATABRICKS_CLIENT_ID": "an-id",
    "DATABRICKS_CLIENT_SECRET": "a secret",
    "DATABRICKS_WAREHOUSE_ID": "0123",
    "REGROUP_TABLES": "/Volumes/main/regroup/warehouse",
    "REGROUP_READERS": "everybody",
}
PLATFORM = ("DATABRICKS_HOST", "DATABRICKS_CLIENT_ID", "DATABRICKS_CLIENT_SECRET")


@pytest.fixture(scope="module")
def bundle():
    return YAML(typ="safe").load((ROOT / "databricks.yml").read_text())


@pytest.fixture(scope="module")
def app():
    (found,) = YAML(typ="safe").load(APP.read_text())["resources"]["apps"].values()
    return found


def test_the_bundle_has_the_app_and_its_variables(bundle, app) -> None:
    assert any(APP in ROOT.glob(pattern) for pattern in bundle["include"])
    asked = set(re.findall(r"\$\{var\.(\w+)\}", APP.read_text()))
    assert asked <= set(bundle["variables"])
    (warehouse,) = app["resources"]
    assert ("CAN_USE", "${var.warehouse_id}") == (
        warehouse["sql_warehouse"]["permission"],
        warehouse["sql_warehouse"]["id"],
    )


def test_the_source_that_is_uploaded_has_what_the_command_starts(bundle, app) -> None:
    source = (APP.parent / app["source_code_path"]).resolve()
    assert source == ROOT
    python, flag, module = app["config"]["command"]
    assert ("python", "-m") == (python, flag)
    assert find_spec(module).origin == str(source / f"{module.replace('.', '/')}.py")
    left_out = [source / pattern.partition("/")[0] for pattern in bundle["sync"]["exclude"]]
    assert all(each.is_dir() and each.name in ("tests", "bench", "testing") for each in left_out)


def test_the_environment_is_what_the_command_reads(app) -> None:
    declared = {each["name"] for each in app["config"]["env"]}
    assert set(ENVIRONMENT) == declared | set(PLATFORM)
    assert databricks_app.warehouse(ENVIRONMENT).http_path == "/sql/1.0/warehouses/0123"
    for name in ENVIRONMENT:
        with pytest.raises(LakeError, match=name):
            databricks_app.warehouse({key: value for key, value in ENVIRONMENT.items() if key != name})


def test_what_the_app_installs_is_locked_and_has_all_that_the_pages_import() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ours = declared["project"]
    bound = {Requirement(each).name for each in (*ours["dependencies"], *ours["optional-dependencies"]["databricks"])}
    wanted = {Requirement(each) for each in declared["dependency-groups"]["app"]}
    assert {each.name for each in wanted} <= bound
    assert not any(each.specifier for each in wanted), "bounds are stated once, with the dependencies"
    pinned = {package["name"] for package in LockedPackages().group("app")}
    assert {each.name for each in wanted} <= pinned
    assert not {"pyspark", "delta-spark", "confluent-kafka", "great-expectations"} & pinned
    assert "pyarrow" in str(requires("databricks-sql-connector"))


def test_all_that_the_pages_import_is_locked_and_nothing_of_the_jobs_is() -> None:
    code = (
        "import sys, dashboards.databricks_app, dashboards.lake.databricks_lake, databricks.sql;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split()) - sys.stdlib_module_names
    assert {"dashboards", "schemas", "databricks", "sqlglot"} <= imported
    assert not {"jobs", "pipelines", "pyspark", "delta", "confluent_kafka", "kafka"} & imported
    source = [file.read_text() for folder in ("dashboards", "schemas") for file in (ROOT / folder).rglob("*.py")]
    named = {found for text in source for found in re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)}
    installed, locked = packages_distributions(), {package["name"] for package in LockedPackages().group("app")}
    for name in named & set(installed) - {"dashboards", "schemas"}:
        assert locked & {re.sub("[-_.]+", "-", each.lower()) for each in installed[name]}, name


@pytest.fixture
def readers(tmp_path):
    file = tmp_path / "readers.toml"
    file.write_text('[readers]\n"ann@example.org" = ["billing-"]\n"@ops" = [""]\n')
    return ENVIRONMENT | {"REGROUP_READERS": str(file)}


def seen(client, **headers: str) -> set[str]:
    described = client.get("/search?q=e", headers={name.replace("_", "-"): value for name, value in headers.items()})
    return (
        {group["label"] for group in described.json["groups"]} if described.status_code == 200 else {described.status}
    )


def test_the_platform_says_who_reads_and_the_readers_list_what_they_see(lake, tmp_path, now, readers) -> None:
    sample.write(tmp_path, sample.everyday(now))
    access = databricks_app.access(readers)
    client = create_app(lake(tmp_path), access=access).server.test_client()
    assert access.refusal(databricks_app.EVERYWHERE) is None
    assert {"billing-worker"} == seen(client, X_Forwarded_Email="ann@example.org")
    assert set() == seen(client, X_Forwarded_Email="eve@example.org")
    assert set() == seen(client, X_Forwarded_Email="eve@example.org", X_Forwarded_Groups="ops")
    assert set() == seen(client, X_Forwarded_Email="@ops")
    assert {"401 UNAUTHORIZED"} == seen(client) == seen(client, X_Forwarded_User="ann@example.org")
    everybody = create_app(lake(tmp_path), access=databricks_app.access(ENVIRONMENT)).server.test_client()
    assert {"billing-worker", "payments-loader"} <= seen(everybody, X_Forwarded_Email="eve@example.org")


@pytest.mark.parametrize(("text", "printed"), [("", "names no readers"), ("[reader]\na = ['b']", "names no readers"), (None, "No such file")])  # fmt: skip
def test_without_its_list_of_readers_the_app_does_not_start(tmp_path, monkeypatch, capsys, text, printed) -> None:
    if text is not None:
        (tmp_path / "readers.toml").write_text(text)
    for name, value in (ENVIRONMENT | {"REGROUP_READERS": str(tmp_path / "readers.toml")}).items():
        monkeypatch.setenv(name, value)
    assert 2 == databricks_app.main()
    assert printed in capsys.readouterr().err


def loaded(tmp_path: Path, *lines: str) -> Settings:
    (tmp_path / "regroup.toml").write_text("\n".join(("[databricks]", *lines)))
    return Settings.load(tmp_path / "regroup.toml", {})


WHERE = ('server_hostname = "w.invalid"', 'http_path = "/sql/1.0/warehouses/1"', 'tables = "main.regroup"')


def test_settings_name_a_warehouse_with_its_secret_by_reference(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("A_TOKEN", "very secret")
    settings = loaded(tmp_path, *WHERE, 'token = "env:A_TOKEN"')
    assert "DatabricksLake" == type(lake_of_settings(settings)).__name__
    assert "very secret" not in repr(settings)
    assert "LocalLake" == type(lake_of_settings(Settings())).__name__


@pytest.mark.parametrize(
    ("lines", "printed"),
    [
        (WHERE[1:], "has no server_hostname"),
        (WHERE, "needs token"),
        ((*WHERE, 'client_id = "a"'), "needs token"),
        ((*WHERE, 'token = "a"', 'client_id = "b"', 'client_secret = "c"'), "needs token"),
        ((*WHERE[:2], 'tables = "regroup"', 'token = "a"'), "must be catalog.schema or a folder"),
        ((*WHERE, 'tokens = "a"'), "did you mean token?"),
    ],
)
def test_settings_that_cannot_work_are_one_sentence(tmp_path, lines, printed) -> None:
    with pytest.raises(UserError, match=re.escape(printed)):
        loaded(tmp_path, *lines)


def test_a_reference_to_nothing_is_one_sentence(tmp_path) -> None:
    with pytest.raises(UserError, match="REGROUP_NOT_SET, which is not set"):
        lake_of_settings(loaded(tmp_path, *WHERE, 'token = "env:REGROUP_NOT_SET"'))
