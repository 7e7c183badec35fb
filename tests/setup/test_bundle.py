"""The Databricks bundle, checked as strictly as possible without a workspace: it has never been deployed from here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from jobs.command_line.parser import parser
from testing.bundle_schema import ROOT, errors, files, loaded, whole

REFERENCE = re.compile(r"\$\{([^}]*)\}")
JOB = {
    "name", "max_concurrent_runs", "tags", "continuous", "schedule", "email_notifications", "health", "job_clusters", "tasks",
    "environments",
}  # fmt: skip
TASK = {"task_key", "depends_on", "job_cluster_key", "environment_key", "python_wheel_task", "libraries"}
KINDS = {"jobs", "apps", "dashboards", "schemas", "volumes"}
LONG_RUNNING = {"ingest", "notify"}


def texts(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [text for value in node.values() for text in texts(value)]
    if isinstance(node, list):
        return [text for value in node for text in texts(value)]
    return [node] if isinstance(node, str) else []


def resources(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in files():
        for name, resource in loaded(path)["resources"].get(kind, {}).items():
            assert name not in found, f"{kind}.{name} is there twice"
            found[name] = resource
    return found


@pytest.fixture(scope="module")
def bundle() -> Any:
    return loaded(ROOT / "databricks.yml")


def job_files() -> list[Path]:
    return [path for path in files() if "jobs" in loaded(path)["resources"]]


def test_the_bundle_includes_every_resource_file_and_nothing_is_there_that_it_does_not(bundle) -> None:
    there = {path for kind in ("job", "app", "dashboard") for path in ROOT.glob(f"**/*.{kind}.yml")}
    assert {path for path in there if ".venv" not in path.parts} == set(files())
    assert set(bundle) == {
        "bundle",
        "include",
        "sync",
        "variables",
        "permissions",
        "experimental",
        "artifacts",
        "targets",
    }
    assert all(set(loaded(path)) == {"resources"} and set(loaded(path)["resources"]) <= KINDS for path in files())


def test_every_resource_has_a_key_of_its_own_because_the_cli_refuses_a_key_of_two_kinds() -> None:
    keys = [key for kind in KINDS for key in resources(kind)]
    assert len(keys) == len(set(keys))


def test_every_reference_leads_somewhere_and_every_variable_is_used(bundle) -> None:
    asked = {
        name
        for path in [ROOT / "databricks.yml", *files()]
        for text in texts(loaded(path))
        for name in REFERENCE.findall(text)
    }
    variables = {name.removeprefix("var.") for name in asked if name.startswith("var.")}
    assert variables == set(bundle["variables"])
    for name in asked - {f"var.{variable}" for variable in variables} - {"bundle.target", "bundle.name"}:
        place, kind, resource, key = name.split(".")
        assert place == "resources", name
        assert key in {"name", "id"}, name
        assert resource in resources(kind), name
    assert all(variable["description"] and "default" in variable for variable in bundle["variables"].values())


@pytest.mark.parametrize("path", job_files(), ids=lambda path: path.name)
def test_a_job_has_what_a_job_may_have_and_runs_once_at_a_time(path: Path) -> None:
    for name, job in loaded(path)["resources"]["jobs"].items():
        assert path.name == f"{name}.job.yml"
        assert set(job) <= JOB, name
        assert job["max_concurrent_runs"] == 1
        assert job["tags"] == {"application": "regroup"}, "by which budgets find it"
        assert ("continuous" in job) != ("schedule" in job)
        assert ("continuous" in job) == (name in LONG_RUNNING)
        assert "health" in job or name in LONG_RUNNING, "a scheduled run that hangs must be noticed"
        assert job["email_notifications"]["on_failure"] == "${var.notify}"


def test_the_documented_budget_policies_are_of_resources_of_the_bundle_that_have_no_cluster() -> None:
    text = (ROOT / "docs" / "databricks.md").read_text(encoding="utf-8")
    (example,) = (found for found in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "budget_policy_id" in found)
    named = YAML(typ="safe").load(example)["targets"]["prod"]["resources"]
    assert set(named["jobs"]) == {name for name, job in resources("jobs").items() if "job_clusters" not in job}
    assert set(named["apps"]) == set(resources("apps"))


def tasks() -> dict[str, tuple[str, Any, Any]]:
    """Every task by its key, with the name of its job and the job."""
    found = [(task, name, job) for name, job in resources("jobs").items() for task in job["tasks"]]
    assert len({task["task_key"] for task, *_ in found}) == len(found)
    return {task["task_key"]: (name, job, task) for task, name, job in found}


@pytest.mark.parametrize("key", tasks())
def test_what_a_task_starts_is_an_entry_point_with_parameters_that_it_understands(key: str) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, job, task = tasks()[key]
    wheel = task["python_wheel_task"]
    assert set(task) <= TASK
    assert task.get("job_cluster_key") in {each["job_cluster_key"] for each in job.get("job_clusters", [])} | {None}
    assert task.get("environment_key") in {each["environment_key"] for each in job.get("environments", [])} | {None}
    assert wheel["package_name"] == scripts["name"]
    assert wheel["entry_point"] in scripts["scripts"]
    args = parser().parse_args(wheel["parameters"])
    assert args.command == key
    assert getattr(args, "once", False) == (name not in LONG_RUNNING)
    assert str(args.warehouse).startswith("/Volumes/")
    assert str(args.config).startswith("/Volumes/")
    assert args.tables == "${var.catalog}.${var.schema}"
    wheels = [each["whl"] for each in task.get("libraries", [])] + [
        dependency for each in job.get("environments", []) for dependency in each["spec"]["dependencies"]
    ]
    assert wheels == ["../dist/*.whl"], "where `uv build --wheel` puts it, as seen from the file"


def test_the_tasks_of_a_job_run_one_after_the_other() -> None:
    for name, job in resources("jobs").items():
        keys = [task["task_key"] for task in job["tasks"]]
        after = [[each["task_key"] for each in task.get("depends_on", [])] for task in job["tasks"]]
        assert after == [[], *([key] for key in keys[:-1])], name
    assert ["build", "analyze", "quality"] == [task["task_key"] for task in resources("jobs")["pipeline"]["tasks"]]


def test_jobs_that_end_are_serverless_and_only_ingest_has_workers_besides_the_driver() -> None:
    for name, job in resources("jobs").items():
        assert ("environments" in job) == ("job_clusters" not in job) == (name not in LONG_RUNNING), name
        assert 1 == len({task.get("environment_key", task.get("job_cluster_key")) for task in job["tasks"]}), name
        for cluster in (each["new_cluster"] for each in job.get("job_clusters", [])):
            is_single = cluster.get("spark_conf", {}).get("spark.databricks.cluster.profile") == "singleNode"
            assert is_single == (cluster.get("num_workers") == 0) == ("autoscale" not in cluster) == (name != "ingest")


def test_the_wheel_brings_no_spark_of_its_own_because_serverless_compute_has_one() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert not [each for each in needed if each.startswith(("pyspark", "delta-spark"))]


def test_who_may_see_the_resources_is_one_variable_and_nobody_by_default(bundle) -> None:
    assert "${var.permissions}" == bundle["permissions"]
    assert [] == bundle["variables"]["permissions"]["default"]
    assert not [each for kind in KINDS for each in resources(kind).values() if "permissions" in each]


def test_the_schema_has_the_name_by_which_jobs_ask_for_it_in_every_target(bundle) -> None:
    assert {"skip_name_prefix_for_schema": True} == bundle["experimental"]
    assert "${var.schema}" == resources("schemas")["tables"]["name"]


def test_nothing_runs_in_dev_by_itself_and_prod_runs_as_nobody_in_person(bundle) -> None:
    targets = bundle["targets"]
    assert targets["dev"] == {"mode": "development", "default": True}, "which pauses schedules"
    assert targets["staging"]["presets"]["trigger_pause_status"] == "PAUSED"
    assert targets["prod"]["mode"] == "production"
    assert set(targets["prod"]["run_as"]) == {"service_principal_name"}


def test_a_field_that_the_schema_of_the_cli_does_not_know_is_an_error_with_its_place() -> None:
    name = {"oneOf": [{"type": "string", "pattern": r"^regroup-[\p{L}]+$"}, {"pattern": r"^\p{N}$"}]}
    job = {"type": "object", "properties": dict.fromkeys(JOB, True) | {"name": name}, "additionalProperties": False}
    known = {"jobs": {"additionalProperties": job}} | dict.fromkeys(KINDS - {"jobs"}, True)
    schema = {"properties": {"resources": {"properties": known, "additionalProperties": False}}}
    assert [] == errors(whole(), schema)
    del job["properties"]["tags"]
    assert "resources.jobs.ingest: Additional properties are not allowed ('tags' was unexpected)" in errors(
        whole(), schema
    )


def test_secrets_stand_in_the_bundle_by_reference_only() -> None:
    for path in files():
        for text in texts(loaded(path)):
            if re.search(r"(?i)password|token|secret", text):
                assert re.fullmatch(r"\{\{secrets/\$\{var\.secret_scope\}/[a-z-]+\}\}", text), text
