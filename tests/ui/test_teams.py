"""Team labels: shell patterns mean the same in DuckDB, Spark SQL and Python, and a bad one gives an error of one
sentence.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.lake.databricks_sql import translated
from dashboards.teams import Teams, teams_of_document, teams_table
from testing.processor_time import within

TEAMS = Teams.of(
    {
        "payments": ["payments-*", "billing-?"],
        "search": [{"groups": "search-[a-c0-9]*", "clusters": "prod-*"}, "[!x]|y"],
        "rest": ["payments-late", "*"],
    }
)


@pytest.mark.parametrize(
    ("cluster", "group", "team"),
    [
        ("k", "payments-a", "payments"),
        ("k", "payments-late", "payments"),
        ("k", "Payments-a", "rest"),
        ("k", "billing-1", "payments"),
        ("k", "billing-\n", "payments"),
        ("k", "billing-12", "rest"),
        ("prod-eu", "search-b", "search"),
        ("test", "search-b", "rest"),
        ("k", "a|y", "search"),
        ("k", "x|y", "rest"),
        ("k", "", "rest"),
    ],
)
def test_the_first_match_in_the_order_of_the_file_counts(cluster, group, team) -> None:
    assert TEAMS.of_group(cluster, group) == team == TEAMS.name_at(asked(TEAMS, cluster, group))


def asked(teams: Teams, cluster: str, group: str) -> int:
    sql = f"SELECT {teams.sql} FROM (SELECT $cluster AS cluster, $group AS group_id)"
    with duckdb.connect() as connection:
        [(position,)] = connection.execute(sql, {"cluster": cluster, "group": group, **teams.parameters}).fetchall()
    return int(position)


def test_a_group_without_a_match_has_no_team() -> None:
    teams = Teams.of({"a": ["b-*"]})
    assert (teams.of_group("k", "c"), asked(teams, "k", "c"), teams.position("none")) == (None, -1, -1)
    assert (Teams().of_group("k", "c"), asked(Teams(), "k", "c"), bool(Teams())) == (None, -1, False)


PIECES = st.sampled_from(
    ["*", "?", "[ab]", "[!a]", "[a-c]", "[]]", "[[]", "a", "b", ".", "|", "\\", "^", "$", "é", "\n", "-"]
)
TEXTS = st.text(st.sampled_from("abc]![.|\\^$é\n-"), max_size=8)


@given(st.lists(PIECES, min_size=1, max_size=6).filter(lambda p: "".join(p).count("*") <= 3), TEXTS)
def test_patterns_mean_what_shells_mean(pieces, text) -> None:
    pattern = "".join(pieces)
    teams = Teams.of({"a": [pattern]})
    expected = fnmatchcase(text, pattern)
    assert (teams.of_group("k", text) == "a") == expected == (asked(teams, "k", text) == 0)


def test_a_warehouse_gets_the_patterns_as_parameters() -> None:
    text = translated(f"SELECT {TEAMS.sql} AS team FROM groups").rest
    assert text.count("REGEXP_LIKE(") == text.count(":p_team_") == 5
    assert "payments" not in text


def test_no_id_of_a_client_takes_long() -> None:
    teams = Teams.of({"a": ["*x*x*y"], "b": ["*-*-*z"]})
    groups = ("x" * 1_024, "x-" * 512, "-" * 32_768)
    assert [None] * 3 == within(0.5, lambda: [teams.of_group("k", group) for group in groups])


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ([], "teams must be a table"),
        ({"a": "b-*"}, "a must be a list of patterns"),
        ({"a": []}, "a must be a list of patterns"),
        ({"a": [1]}, "each pattern of a must be text"),
        ({"a": [{"group": "x"}]}, "each pattern of a must be text"),
        ({"a": [{"groups": "x", "clusters": 1}]}, "clusters of a must be text"),
        ({"a": ["x["]}, "has a [ without ]"),
        ({"a": ["[z-a]"]}, "has the range z-a, which is empty"),
        ({"a": ["*a*b*c*d"]}, "more than 3 stars"),
        ({"a": [""]}, "is empty"),
        ({"none": ["x"]}, "the name 'none' cannot be used"),
        ({"a\n": ["x"]}, "cannot be used"),
        ({"a": ["x"] * 1_001}, "more than 1,000 patterns"),
    ],
)
def test_a_wrong_setting_is_one_sentence(declared, expected) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)) as found:
        Teams.of(declared)
    assert str(found.value).endswith(".")
    assert "\n" not in str(found.value)


def test_teams_are_handed_over_as_text_and_read_from_a_file(tmp_path) -> None:
    assert TEAMS == teams_of_document(TEAMS.document())
    assert Teams() == teams_of_document("")
    with pytest.raises(ValueError, match="must be a table"):
        teams_of_document("[")
    file = tmp_path / "teams.toml"
    file.write_text('[teams]\na = ["b-*"]\n')
    assert Teams.of({"a": ["b-*"]}) == teams_table(file)
    file.write_text("")
    with pytest.raises(ValueError, match="names no teams"):
        teams_table(file)
