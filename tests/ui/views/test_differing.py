"""The differences shown for a range are those that chance does not explain, with their numbers."""

from __future__ import annotations

from random import Random

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from dashboards.lake.lake import LocalLake
from dashboards.queries.causes import Scope
from dashboards.queries.differences import Attribute, Values, values_of
from dashboards.queries.store import Store
from dashboards.urlstate import Window
from dashboards.views.comparison.differing import _at_least, differing, differing_panel
from schemas.written import percent
from testing import sample
from tests.ui.pages.hostile import STRINGS

HOUR = 3_600_000


def row(attribute: str, value: str, here: int, before: int) -> dict:
    return {"attribute": attribute, "value": value, "here": here, "before": before}


def panel_of(rows: list[dict] | None) -> str:
    values = None if rows is None else Values(rows, is_capped=False, has_members=True)
    return text_of(differing_panel(values))


def text_of(component) -> str:
    return str(component.to_plotly_json())


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_the_probability_is_that_of_fisher_s_exact_test(here, before, data) -> None:
    having = data.draw(st.integers(0, here + before))
    found = data.draw(st.integers(max(0, having - before), min(here, having)))
    expected = hypergeom.sf(found - 1, here + before, having, here)
    assert _at_least(found, here, having, here + before) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_a_host_that_came_with_the_trouble_is_found() -> None:
    rows = [
        row("all", "", 40, 50), row("host", "/10.0.0.9", 25, 0), row("host", "/10.0.0.1", 10, 30),
        row("cause", "poll_timeout", 24, 3), row("group", "billing", 12, 14),
    ]  # fmt: skip
    found = differing(rows)
    assert [("host", "/10.0.0.9", 25, 0), ("cause", "poll_timeout", 24, 3)] == [each[:4] for each in found]
    panel = panel_of(rows)
    assert "10.0.0.9" in panel
    assert percent(25 / 40) in panel


def test_small_numbers_are_explained_by_chance() -> None:
    rows = [row("all", "", 6, 8), row("host", "/10.0.0.9", 3, 0)]
    assert [] == differing(rows)
    assert "chance explains every difference" in panel_of(rows)


def test_chance_alone_is_hardly_ever_listed() -> None:
    """A hundred draws of thirty hosts without any difference: at most 1 % of the lists, so about one, is not empty."""
    random, listed = Random(7), 0
    for _ in range(100):
        drawn = [[random.randrange(30) for _ in range(200)] for _ in range(2)]
        rows = [row("host", str(host), drawn[0].count(host), drawn[1].count(host)) for host in range(30)]
        listed += bool(differing([row("all", "", 200, 200), *rows]))
    assert listed <= 4


def test_nothing_is_compared_with_what_was_not_seen() -> None:
    rows = [row("all", "", 40, 0), row("host", "/10.0.0.9", 25, 0)]
    assert [] == differing(rows)
    assert "there is nothing to compare" in panel_of(rows)
    assert "was not recorded as a whole" in panel_of(None)
    assert [] == differing([])


def test_values_are_those_of_the_verdicts_of_both_ranges(tmp_path, now) -> None:
    verdicts = [
        {
            "cluster": "prod", "group_id": f"g{number % 3}", "incarnation": 0, "generation_id": number,
            "joined_at": now - HOUR // 2 - (number % 2) * HOUR, "verdict": "broker", "cause": "coordinator",
            "set_off_by": "coordinator", "evidence": "observed", "instances": [f"i{number % 2}", "i2"],
            "hosts": [] if number % 2 else ["/10.0.0.9"], "reason": "", "proof": [],
            "lost_resource_seconds": 1.0, "lost_resource_seconds_min": 1.0, "lost_resource_seconds_max": 1.0,
        }
        for number in range(12)
    ]  # fmt: skip
    rows = sample.churny(now)
    sample.write(tmp_path, rows | {"verdicts": verdicts})
    view, before = (Window(now - back * HOUR, now - (back - 1) * HOUR, is_live=False) for back in (1, 2))
    found = values_of(Store(LocalLake(tmp_path)), view, before, Scope()).rows
    assert row("all", "", 6, 6) == found[0]
    assert {("/10.0.0.9", 6, 0)} == {tuple(each.values())[1:] for each in found if each["attribute"] == Attribute.HOST}
    assert {("i0", 6, 0), ("i1", 0, 6), ("i2", 6, 6)} == {
        tuple(each.values())[1:] for each in found if each["attribute"] == Attribute.INSTANCE
    }
    only = values_of(Store(LocalLake(tmp_path)), view, before, Scope(cluster="elsewhere")).rows
    assert [] == differing(only)


def test_libraries_software_and_coordinators_are_those_of_the_rebalances_members_and_log_lines(tmp_path, now) -> None:
    rows = sample.churny(now)
    lines = [
        {
            "cluster": g["cluster"], "source_id": "broker-2.log", "line_no": g["generation_id"],
            "event_at": g["joined_at"] + 2, "event_kind": "stabilized", "broker_id": 2 + g["generation_id"] // 5,
            "group_id": g["group_id"], "generation_id": g["generation_id"],
        }
        for g in rows["generations"]
    ]  # fmt: skip
    # A line of a deleted group of the same name, and a line whose broker is not known.
    lines += [
        lines[0] | {"line_no": 90, "event_at": lines[0]["event_at"] + 120_000, "broker_id": 9},
        lines[0] | {"line_no": 91, "broker_id": None},
    ]
    sample.write(tmp_path, rows | sample.verdicts(rows) | sample.pushes(rows) | {"coordinator_events": lines})
    half = rows["generations"][4]["joined_at"]
    view, before = Window(half, now, is_live=False), Window(2 * half - now, half, is_live=False)
    found = values_of(Store(LocalLake(tmp_path)), view, before, Scope()).rows
    assert {
        "library": [("librdkafka", 4, 4)],
        "software": [("apache-kafka-java 4.1.0", 4, 4)],
        "coordinator": [("3", 4, 0), ("2", 0, 4)],
    } == {
        kind: [(each["value"], each["here"], each["before"]) for each in found if each["attribute"] == kind]
        for kind in (Attribute.LIBRARY, Attribute.SOFTWARE, Attribute.COORDINATOR)
    }
    assert "broker 3" in panel_of([row("all", "", 90, 90), row("coordinator", "3", 60, 0)])


def test_it_is_said_that_members_could_not_be_compared(tmp_path, now) -> None:
    rows = sample.churny(now)
    sample.write(tmp_path, rows | sample.verdicts(rows))
    # As Regroup 0.1 wrote it.
    members = DeltaTable(tmp_path / "generation_members").to_pyarrow_table()
    write_deltalake(
        tmp_path / "generation_members",
        members.drop_columns(["client_library"]),
        mode="overwrite",
        schema_mode="overwrite",
    )
    view, before = (Window(now - back * HOUR // 2, now - (back - 1) * HOUR // 2, is_live=False) for back in (1, 2))
    found = values_of(Store(LocalLake(tmp_path)), view, before, Scope())
    assert not found.has_members
    assert "could not be compared" in text_of(differing_panel(found))
    assert "could not be compared" not in text_of(differing_panel(found._replace(has_members=True)))


def test_hostile_values_stay_text() -> None:
    rows = [row("all", "", 5_000, 5_000), *(row("instance", text, 900, 0) for text in STRINGS[:12])]
    panel = panel_of(rows)
    assert "\u202e" not in panel
    assert len(differing(rows)) == len(set(STRINGS[:12]))
