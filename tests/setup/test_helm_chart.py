"""The Helm chart, rendered by the real helm: valid for Kubernetes, restricted, one writer, no secret in any manifest."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from shutil import which
from textwrap import dedent
from typing import Any

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from jobs.command_line.parser import parser
from jobs.config.settings import Settings
from schemas.states import AlertName

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "regroup"
HOW_TO = ROOT / "docs" / "how-to" / "install-on-kubernetes.md"
HELM = which("helm", path=str(Path(sys.executable).parent)) or which("helm")
pytestmark = pytest.mark.skipif(HELM is None, reason="helm is not on the PATH, and has no package for this machine")
VERSIONS = ("1.26", "1.31", kubernetes_validate.latest_version())

LEAST = ("image.repository=example.org/regroup", "pages.tokenSecret.name=pages")
ALL = (
    *LEAST, "secrets={kafka}", "notify.metrics.tokenSecret.name=metrics", "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true", "dashboard.enabled=true", "pages.ingress.enabled=true", "pages.ingress.host=a.example",
    "pages.ingress.tlsSecret=tls", "serviceAccount.annotations.a=b", "image.pullSecrets={pull}", "podLabels.team=sre",
    "nodeSelector.disk=ssd", "env[0].name=JAVA_HOME", "env[0].value=/opt/java", "networkPolicy.egress[0].ports[0].port=9092",
    "writer.storage.storageClass=ssd",
)  # fmt: skip
PAGES_ONLY = (*LEAST, "writer.enabled=false")
STORE = (*ALL[:3], *ALL[6:], "warehouse=s3a://bucket/regroup")
VALUES = {
    "least": LEAST,
    "all": ALL,
    "pages only": PAGES_ONLY,
    "claim": (*LEAST, "writer.storage.existingClaim=mine"),
    "store": STORE,
}
Manifest = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)


@cache
def rendered(values: tuple[str, ...], version: str = VERSIONS[-1]) -> list[Manifest]:
    options = [word for value in values for word in ("--set", value)]
    done = helm("template", "live", str(CHART), "--kube-version", version, "--namespace", "kafka", *options)
    assert 0 == done.returncode, done.stderr
    return [each for each in YAML(typ="safe").load_all(done.stdout) if each]


def one(values: tuple[str, ...], kind: str) -> Manifest:
    (found,) = [each for each in rendered(values) if each["kind"] == kind]
    return found


def pods(values: tuple[str, ...]) -> list[Manifest]:
    specs = [e["spec"] for e in rendered(values) if e["kind"] in ("StatefulSet", "Deployment", "CronJob")]
    return [spec.get("jobTemplate", {}).get("spec", spec)["template"]["spec"] for spec in specs]


def containers(pod: Manifest) -> list[Manifest]:
    """In the order in which they run."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def container(values: tuple[str, ...], name: str) -> Manifest:
    (found,) = [each for pod in pods(values) for each in containers(pod) if each["name"] == name]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_each_manifest_is_valid_and_has_no_unknown_field(values, version) -> None:
    for manifest in rendered(values, version):
        if not manifest["apiVersion"].startswith("monitoring.coreos.com/"):  # Kinds of the Prometheus operator
            kubernetes_validate.validate(manifest, version, strict=True)


def test_the_chart_is_clean_for_helm() -> None:
    done = helm("lint", "--strict", str(CHART), *(word for value in ALL for word in ("--set", value)))
    assert 0 == done.returncode, done.stdout


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_every_pod_is_restricted(values) -> None:
    """The Pod Security Standard `restricted`, and a root file system that is read-only."""
    for pod in pods(values):
        assert pod["securityContext"]["runAsNonRoot"]
        assert {"type": "RuntimeDefault"} == pod["securityContext"]["seccompProfile"]
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert {"configMap", "emptyDir", "secret", "persistentVolumeClaim"} >= {
            kind for volume in pod["volumes"] for kind in volume.keys() - {"name"}
        }
        for each in containers(pod):
            context = each["securityContext"]
            assert (False, True) == (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"])
            assert {"drop": ["ALL"]} == context["capabilities"]
            assert each["resources"]["limits"]["memory"]
            mounts = {mount["mountPath"] for mount in each["volumeMounts"]}
            assert {"/data", "/tmp", "/etc/regroup/regroup.toml"} <= mounts


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_every_container_runs_a_command_that_exists(values) -> None:
    for pod in pods(values):
        for each in containers(pod):
            assert parser().parse_args(each["args"]).config == Path("/etc/regroup/regroup.toml")


def test_there_is_one_writer_and_pages_and_alerts_beside_it() -> None:
    writer = one(ALL, "StatefulSet")
    assert 1 == writer["spec"]["replicas"]
    assert ["writer", "pages", "notify"] == [each["name"] for each in pods(ALL)[0]["containers"]]
    assert ["pages", "notify"] == parser().parse_args(container(ALL, "writer")["args"]).without
    assert not [each for each in rendered(PAGES_ONLY) if each["kind"] == "StatefulSet"]
    assert 2 == one(PAGES_ONLY, "Deployment")["spec"]["replicas"]
    volumes = pods(VALUES["claim"])[0]["volumes"]
    assert {"claimName": "mine"} in [volume.get("persistentVolumeClaim") for volume in volumes]
    assert "volumeClaimTemplates" not in one(VALUES["claim"], "StatefulSet")["spec"]


def test_with_an_address_jobs_run_one_after_the_other_and_need_no_volume(tmp_path) -> None:
    assert {"CronJob", "Deployment"} <= {each["kind"] for each in rendered(STORE)}
    assert not {"StatefulSet", "ServiceMonitor"} & {each["kind"] for each in rendered(STORE)}
    spec = one(STORE, "CronJob")["spec"]
    assert ("Forbid", "*/15 * * * *") == (spec["concurrencyPolicy"], spec["schedule"])
    (jobs,) = [pod for pod in pods(STORE) if pod.get("restartPolicy") == "Never"]
    steps = ["ingest", "build", "analyze", "notify", "maintain", "quality"]
    assert steps == [parser().parse_args(each["args"]).command for each in containers(jobs)]
    assert all(parser().parse_args(each["args"]).once for each in containers(jobs))
    quiet = pods((*STORE, "notify.enabled=false"))
    assert "notify" not in [each["name"] for pod in quiet for each in containers(pod)]
    for pod in pods(STORE):
        assert not [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
        for each in containers(pod):
            found = Settings.load(environment={e["name"]: e["value"] for e in each["env"]})
            assert "s3a://bucket/regroup" == found.warehouse_text
    assert not [pod for pod in pods((*STORE, "writer.enabled=false")) if pod.get("restartPolicy") == "Never"]


def test_the_settings_load_and_the_environment_guards_what_others_reach(tmp_path) -> None:
    file = tmp_path / "regroup.toml"
    file.write_text(settings_of(ALL), encoding="utf-8")
    for name, host, token in (("pages", "host", "pages_token"), ("notify", "metrics_host", "metrics_token")):
        environment = {each["name"]: each["value"] for each in container(ALL, name)["env"]}
        found = Settings.load(file, environment=environment)
        assert "0.0.0.0" == getattr(found, host)
        secret = name if name == "pages" else "metrics"
        assert f"file:/etc/regroup/secrets/{secret}/token" == getattr(found, token)
        mounted = {mount["mountPath"] for mount in container(ALL, name)["volumeMounts"]}
        assert f"/etc/regroup/secrets/{secret}" in mounted
    assert "metrics_host" not in json.dumps(container(LEAST, "notify"))


def settings_of(values: tuple[str, ...]) -> str:
    (text,) = [e["data"]["regroup.toml"] for e in rendered(values) if "regroup.toml" in e.get("data", ())]
    return str(text)


def test_ports_have_the_same_names_everywhere() -> None:
    service, policy = one(ALL, "Service"), one(ALL, "NetworkPolicy")
    ports = {
        port["name"]: port["containerPort"] for each in pods(ALL)[0]["containers"] for port in each.get("ports", ())
    }
    assert {"pages": 8050, "metrics": 8060} == ports
    assert ports.keys() == {port["targetPort"] for port in service["spec"]["ports"]}
    assert ports.keys() == {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    selector = service["spec"]["selector"]
    assert selector.items() <= one(ALL, "StatefulSet")["spec"]["template"]["metadata"]["labels"].items()
    assert selector == policy["spec"]["podSelector"]["matchLabels"]
    monitor = one(ALL, "ServiceMonitor")["spec"]
    assert ["metrics"] == [endpoint["port"] for endpoint in monitor["endpoints"]]
    assert {"name": "metrics", "key": "token"} == monitor["endpoints"][0]["authorization"]["credentials"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


def test_rules_and_dashboards_are_those_of_the_repository() -> None:
    rules = [rule["alert"] for group in one(ALL, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    assert {name.value for name in AlertName} >= set(rules)
    assert rules
    (boards,) = [e["data"] for e in rendered(ALL) if "regroup-rebalances.json" in e.get("data", ())]
    for file in (ROOT / "deploy" / "grafana").glob("*.json"):
        assert json.loads(file.read_text("utf-8")) == json.loads(boards[f"regroup-{file.name}"])


def test_a_change_of_the_settings_restarts_the_pods() -> None:
    def checksum(values):
        return one(values, "StatefulSet")["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]

    assert checksum(LEAST) == checksum(ALL)
    assert checksum(LEAST) != checksum((*LEAST, "settings=[clusters.a]"))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (("pages.tokenSecret.name=t",), "image.repository"),
        (("image.repository=x",), "The pages would be open to everybody: set pages.tokenSecret.name"),
        ((*LEAST, "serviceMonitor.enabled=true"), "set notify.metrics.tokenSecret.name"),
        ((*LEAST, "writer.replicas=2"), "replicas"),
        ((*LEAST, "image.digest=latest"), "digest"),
        ((*LEAST, "pages.port=0"), "port"),
        ((*LEAST, "warehouse=hdfs://host/x"), "warehouse"),
        ((*LEAST, "warehouse=/data"), "warehouse"),
        ((*LEAST, "pages.ingress.enabled=true"), "Set pages.ingress.host"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(values, sentence) -> None:
    done = helm(
        "template", "x", str(CHART), "--kube-version", "1.31", *(word for value in values for word in ("--set", value))
    )
    assert done.returncode
    assert sentence in done.stderr


def test_pages_behind_a_proxy_need_no_token() -> None:
    values = ("image.repository=x", 'settings=trusted_proxies = "10.0.0.0/8"')
    assert "REGROUP_PAGES_TOKEN" not in json.dumps(container(values, "pages"))


def test_the_values_of_the_how_to_page_are_taken(tmp_path) -> None:
    text = HOW_TO.read_text(encoding="utf-8")
    example = dedent(text[text.index("   ```yaml\n") + len("   ```yaml\n") : text.index("   ```\n\n4.")])
    file, settings = tmp_path / "values.yaml", tmp_path / "regroup.toml"
    file.write_text(example, encoding="utf-8")
    done = helm("template", "regroup", str(CHART), "--kube-version", "1.31", "-f", str(file))
    assert 0 == done.returncode, done.stderr
    found = [each for each in YAML(typ="safe").load_all(done.stdout) if each]
    assert "regroup" in [each["metadata"]["name"] for each in found if each["kind"] == "StatefulSet"]
    assert {"ServiceMonitor", "Ingress", "NetworkPolicy"} <= {each["kind"] for each in found}
    (text,) = [each["data"]["regroup.toml"] for each in found if "regroup.toml" in each.get("data", ())]
    settings.write_text(text, encoding="utf-8")
    assert ["prod"] == [cluster.name for cluster in Settings.load(settings, environment={}).clusters]
