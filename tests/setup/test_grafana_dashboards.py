"""The dashboards have only what Grafana's own schema knows: of dashboards, of each panel and of Prometheus queries.

The schema is that of Grafana's SDK. Unknown parts are lost when a dashboard is read and written again.
"""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

DASHBOARDS = sorted((Path(__file__).parents[2] / "deploy" / "grafana").glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def through_grafana(dashboard: dict[str, Any]) -> dict[str, Any]:
    """Return the dashboard after Grafana's classes have read and written it."""
    register_default_plugins()
    return json.loads(json.dumps(Dashboard.from_json(deepcopy(dashboard)), cls=JSONEncoder))


def lost(before: Any, after: Any, place: str = "") -> list[str]:
    """Return the places whose value is lost or changed. Grafana may add defaults."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            each
            for key, value in before.items()
            for each in (lost(value, after[key], f"{place}/{key}") if key in after else [f"{place}/{key}"])
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [each for i, (a, b) in enumerate(zip(before, after, strict=True)) for each in lost(a, b, f"{place}/{i}")]
    return [] if before == after else [place]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_grafana_knows_everything_in_a_dashboard(path) -> None:
    dashboard = read(path)
    assert dashboard["panels"]
    assert [] == lost(dashboard, through_grafana(dashboard))


def test_the_schema_finds_a_wrong_name_at_every_level() -> None:
    dashboard = read(DASHBOARDS[0])
    dashboard["titel"] = ""
    panel = next(each for each in dashboard["panels"] if each["type"] == "timeseries")
    places = (panel, panel.setdefault("options", {}), panel["fieldConfig"]["defaults"], panel["targets"][0])
    for place in places:
        place["titel"] = ""
    assert 1 + len(places) == len(lost(dashboard, through_grafana(dashboard)))
