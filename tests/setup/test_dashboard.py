"""The bundle's AI/BI dashboard: its queries run over the views, and its widgets show columns that the queries have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from testing.bundle_schema import ROOT, loaded
from testing.warehouses.named import named

RESOURCE = ROOT / "dashboards" / "regroup.dashboard.yml"
WIDTH = 6
"""Columns of a dashboard's grid."""
VERSIONS = {"bar": 3, "counter": 2, "table": 1}
"""Versions of the widgets' formats, as exported dashboards have them."""


@pytest.fixture(scope="module")
def dashboard() -> Any:
    resource = loaded(RESOURCE)["resources"]["dashboards"]["losses"]
    return json.loads((RESOURCE.parent / resource["file_path"]).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def columns(spark, dashboard, tmp_path_factory) -> Iterator[dict[str, list[str]]]:
    """The columns of each dataset's result, which has rows."""
    with named(spark, tmp_path_factory.mktemp("dashboard"), "shown") as found:
        session = spark.newSession()
        session.conf.set("spark.sql.ansi.enabled", "true")
        session.sql(f"USE {found.schema}")
        results = {each["name"]: session.sql("".join(each["queryLines"])).toArrow() for each in dashboard["datasets"]}
        assert [] == [name for name, result in results.items() if not result.num_rows]
        yield {name: result.column_names for name, result in results.items()}


def test_every_query_runs_on_spark_and_every_widget_shows_columns_of_its_query(dashboard, columns) -> None:
    asked = set()
    for page in dashboard["pages"]:
        for placed in page["layout"]:
            widget = placed["widget"]
            (query,) = (each["query"] for each in widget["queries"])
            asked.add(query["datasetName"])
            assert [f"`{field['name']}`" for field in query["fields"]] == [
                field["expression"] for field in query["fields"]
            ]
            named_fields = {field["name"] for field in query["fields"]}
            assert named_fields <= set(columns[query["datasetName"]]), widget["name"]
            encodings = dict(widget["spec"]["encodings"])
            shown = [*encodings.pop("columns", []), *encodings.values()]
            assert named_fields == {each["fieldName"] for each in shown}, widget["name"]
            assert VERSIONS[widget["spec"]["widgetType"]] == widget["spec"]["version"]
    assert asked == {each["name"] for each in dashboard["datasets"]}


def test_names_are_unique_and_no_widget_covers_another(dashboard) -> None:
    names = [
        *(each["name"] for each in dashboard["datasets"]),
        *(f"page {page['name']}" for page in dashboard["pages"]),
        *(f"widget {placed['widget']['name']}" for page in dashboard["pages"] for placed in page["layout"]),
    ]
    assert len(names) == len(set(names))
    for page in dashboard["pages"]:
        places = [placed["position"] for placed in page["layout"]]
        assert all(place["x"] + place["width"] <= WIDTH for place in places)
        assert not any(_overlap(*pair) for pair in combinations(places, 2))


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[start] < other[start] + other[size] and other[start] < one[start] + one[size]
        for start, size in (("x", "width"), ("y", "height"))
    )


def test_the_queries_name_no_schema_which_the_resource_does(dashboard) -> None:
    text = "".join(line for each in dashboard["datasets"] for line in each["queryLines"])
    assert "." not in text.replace("0.5", "")
    resource = loaded(RESOURCE)["resources"]["dashboards"]["losses"]
    assert ("${var.catalog}", "${var.schema}") == (resource["dataset_catalog"], resource["dataset_schema"])
    assert not resource["embed_credentials"], "a reader sees what the grants allow"
