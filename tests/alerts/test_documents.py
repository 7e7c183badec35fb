"""Runbooks, rules, dashboard and reference agree with the code."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from jobs.alerting.delivery import Delivery
from jobs.alerting.metrics import metrics
from jobs.config.settings import Settings
from pipelines.gold.alerts.burn import PAIRS
from schemas.states import AlertName
from testing.alerts.receiving import program

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus-rules.yml"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
RUNBOOKS = ROOT / "docs" / "runbooks"
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
METRIC = re.compile(r"\bregroup_\w+")


@pytest.fixture
def names(tmp_path) -> dict[str, tuple[str, ...]]:
    """Every metric of the exposition with its labels."""
    delivery = Delivery(settings=Settings(), say=print, accepted=Counter(), failed=Counter())
    found = metrics(LocalLake(tmp_path), [], [], delivery, now_ms=0, groups=1)
    return {metric.name: metric.labels for metric in found}


def rules() -> list[dict]:
    return [rule for group in YAML(typ="safe").load(RULES)["groups"] for rule in group["rules"]]


def test_every_alert_has_a_runbook_with_its_four_sections():
    assert {f"{name}.md" for name in AlertName} == {file.name for file in RUNBOOKS.iterdir()}
    for file in RUNBOOKS.iterdir():
        text = file.read_text()
        assert f"# {file.stem}\n" == text[: text.index("\n") + 1]
        assert SECTIONS == re.findall(r"^## (.+)$", text, re.MULTILINE)


def test_the_pages_show_each_runbook_and_nothing_else(tmp_path):
    client = create_app(LocalLake(tmp_path)).server.test_client()
    for name in AlertName:
        response = client.get(f"/runbooks/{name}")
        assert (200, "text/plain") == (response.status_code, response.mimetype)
        assert f"# {name}" in response.text
    for name in ("KafkaNothing", "..%2f..%2fREADME", "KafkaRebalanceStorm.md"):
        assert "text/html" == client.get(f"/runbooks/{name}").mimetype, "the pages' own, or nothing"


def test_every_alert_has_a_rule_for_prometheus_with_its_runbook():
    assert set(AlertName) == {rule["alert"] for rule in rules()}
    for rule in rules():
        assert (ROOT / rule["annotations"]["runbook_url"]).is_file()
        assert rule["alert"] in rule["annotations"]["runbook_url"]


def test_rules_and_dashboard_name_only_metrics_and_labels_that_there_are(names):
    drawn = "".join(file.read_text() for file in DASHBOARDS)
    text = RULES.read_text() + drawn
    assert set(METRIC.findall(text)) <= set(names)
    assert set(names) == set(METRIC.findall(drawn + (ROOT / "docs" / "alerts.md").read_text()))
    for metric, selector in re.findall(r"\b(regroup_\w+)\{([^}]*)\}", text.replace("\\", "")):
        assert set(re.findall(r"(\w+)=", selector)) <= set(names[metric])


def test_prometheus_raises_what_regroup_raises():
    for rule in rules():
        if rule["alert"] != AlertName.REBALANCE_TELEMETRY_STALE:
            assert f'regroup_open_alerts{{alert="{rule["alert"]}"}}' in rule["expr"]


def test_there_is_a_dashboard_of_rebalances_and_one_of_operations() -> None:
    assert ["operations", "rebalances"] == [file.stem for file in DASHBOARDS]
    found = [json.loads(file.read_text()) for file in DASHBOARDS]
    assert len(found) == len({board["uid"] for board in found}) == len({board["title"] for board in found})


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_its_panels_have_places_of_their_own_and_ask_something(file) -> None:
    found = json.loads(file.read_text())
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in found["panels"]]
    assert len(places) == len(set(places)) == len({panel["id"] for panel in found["panels"]})
    for panel in found["panels"]:
        assert panel["targets"]
        assert all(target["expr"] and target["refId"] for target in panel["targets"])
    assert ["datasource", "cluster"] == [variable["name"] for variable in found["templating"]["list"]]
    assert "regroup" in found["links"][0]["tags"], "each leads to the other"
    assert "regroup" in found["tags"]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_prometheus_parses_every_expression_of_a_dashboard(file, tmp_path) -> None:
    asked = [target["expr"] for panel in json.loads(file.read_text())["panels"] for target in panel["targets"]]
    rules = [{"record": f"panel:{number}", "expr": expr.replace("$cluster", ".*")} for number, expr in enumerate(asked)]
    rule_file = tmp_path / "rules.yml"
    YAML(typ="safe").dump({"groups": [{"name": file.stem, "rules": rules}]}, rule_file)
    done = subprocess.run(
        [program("promtool"), "check", "rules", rule_file], capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr


def test_the_example_is_a_configuration_that_alertmanager_takes():
    done = subprocess.run(
        [program("amtool"), "check-config", ROOT / "deploy" / "alertmanager.yml"], capture_output=True, check=False
    )
    assert 0 == done.returncode, done.stderr


def test_the_reference_names_every_alert_and_setting_and_the_rates():
    text = (ROOT / "docs" / "alerts.md").read_text()
    described = {name for name in Settings.__dataclass_fields__ if re.search(rf"\b{name}\b", text + runbooks())}
    mine = {"alertmanagers", "webhooks", "notify_seconds", "resend_seconds", "stale_seconds", "stuck_seconds"}
    assert mine | {"availability_target", "dashboard_url", "runbook_url", "metrics_port", "metrics_groups"} <= described
    assert set(AlertName) == set(re.findall(r"\bKafka[A-Z][A-Za-z]+", text))
    burn = (RUNBOOKS / "KafkaAvailabilityBurn.md").read_text()
    assert [14.4, 6.0, 1.0] == [pair.rate for pair in PAIRS]
    assert "14.4 times over 1 h and 5 min, or 6 times over 6 h and 30 min (page); once over 3 d and 6 h" in burn
    for name, default in re.findall(r"`(\w+)` \(default ([\d.]+)", text + runbooks()):
        assert float(default) == float(getattr(Settings(), name))


def runbooks() -> str:
    return "".join(file.read_text() for file in RUNBOOKS.iterdir())
