"""The demo with Docker Compose: files that exist, settings that load, configurations that the real programs accept."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from jobs.alerting.metrics_server import metrics_token
from jobs.command_line.parser import parser
from jobs.config.listening import listening
from jobs.config.settings import Settings
from jobs.pages import access
from testing.alerts.receiving import program

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
COMPOSE: dict[str, Any] = YAML(typ="safe").load(FOLDER / "compose.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]


def mounts() -> list[tuple[str, str, str]]:
    """Service, file or folder of this repository, and place in the container."""
    return [
        (name, *volume.split(":")[:2])
        for name, service in SERVICES.items()
        for volume in service.get("volumes", ())
        if volume.startswith(".")
    ]


def test_everything_that_is_mounted_is_there() -> None:
    assert len(mounts()) == 6
    for _, source, _ in mounts():
        assert (FOLDER / source).exists(), source
    for secret in COMPOSE["secrets"].values():
        assert (FOLDER / secret["file"]).is_file()
    for name in ("kafka", "regroup"):
        build = SERVICES[name]["build"]
        assert (FOLDER / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]).is_file()


def test_every_port_is_of_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_settings_load_with_guards(tmp_path) -> None:
    text = (FOLDER / "regroup.toml").read_text("utf-8")
    for name, secret in COMPOSE["secrets"].items():
        assert name in SERVICES["regroup"]["secrets"]
        text = text.replace(f"/run/secrets/{name}", str((FOLDER / secret["file"]).resolve()))
    file = tmp_path / "regroup.toml"
    file.write_text(text, encoding="utf-8")
    settings = Settings.load(file, environment={})
    lab = parser().parse_args(SERVICES["kafka"]["command"])
    (cluster,) = settings.clusters
    assert ("lab", cluster.bootstrap_servers) == (lab.command, lab.listen)
    assert listening(lab.listen)[0] == "kafka" == SERVICES["kafka"]["hostname"]
    # The broker's log is where Regroup reads it: one volume, at another place in each container.
    places = {
        name: dict(volume.split(":")[:2] for volume in SERVICES[name]["volumes"]) for name in ("kafka", "regroup")
    }
    (log,) = cluster.logs
    inside = lab.directory.relative_to(places["kafka"]["kafka"]) / "server.log"
    assert log.path == str(Path(places["regroup"]["kafka"]) / inside)
    assert {"kafka": {"condition": "service_healthy"}} == SERVICES["regroup"]["depends_on"]
    assert access(settings).token == "regroup-demo-pages"
    assert metrics_token(settings) == "regroup-demo-metrics"
    (receiver,) = settings.alertmanagers
    assert re.fullmatch(r"http://(\w+):9093", receiver.url)[1] in SERVICES
    args = parser().parse_args(SERVICES["regroup"]["command"])
    assert ("/etc/regroup/regroup.toml", "up") == (str(args.config), args.command)
    assert ["127.0.0.1:8050:8050"] == SERVICES["regroup"]["ports"]
    assert settings.port == 8050


def test_prometheus_and_alertmanager_accept_their_configurations(tmp_path) -> None:
    config = (FOLDER / "prometheus.yml").read_text("utf-8")
    token = (FOLDER / COMPOSE["secrets"]["metrics_token"]["file"]).resolve()
    assert "metrics_token" in SERVICES["prometheus"]["secrets"]
    file = tmp_path / "prometheus.yml"
    file.write_text(config.replace("/run/secrets/metrics_token", str(token)), encoding="utf-8")
    subprocess.run([program("promtool"), "check", "config", file], check=True, capture_output=True)
    subprocess.run([program("amtool"), "check-config", FOLDER / "alertmanager.yml"], check=True, capture_output=True)
    (job,) = YAML(typ="safe").load(config)["scrape_configs"]
    assert [f"regroup:{Settings().metrics_port}"] == job["static_configs"][0]["targets"]


def test_grafana_finds_its_data_source_and_dashboard() -> None:
    places = {place: source for name, source, place in mounts() if name == "grafana"}
    load = YAML(typ="safe").load
    (source,) = load(FOLDER / "grafana" / "datasources" / "prometheus.yml")["datasources"]
    assert ("prometheus", "http://prometheus:9090") == (source["type"], source["url"])
    (provider,) = load(FOLDER / "grafana" / "dashboards" / "regroup.yml")["providers"]
    folder = provider["options"]["path"]
    assert "../grafana" == places[folder]
    assert (
        f"{folder}/rebalances.json" == SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    )
    assert (FOLDER / "../grafana/rebalances.json").is_file()


@pytest.mark.parametrize("name", [name for name in SERVICES if "build" not in SERVICES[name]])
def test_an_image_of_others_has_an_exact_version(name) -> None:
    assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])
