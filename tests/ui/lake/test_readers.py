"""Each reader sees the groups that the setting `readers` allows, and nothing of others on any page or endpoint."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import product
from pathlib import Path

import pytest
from deltalake import write_deltalake

from dashboards.answers.questions.questions import QUESTIONS
from dashboards.app import create_app, main
from dashboards.lake.lake import TABLES, LocalLake
from dashboards.lake.readers import Readers, ReadersLake
from dashboards.lake.row_filter import MASKED, WHOLE, filtered_sql
from dashboards.urlstate import PATHS, group_hash
from dashboards.web.access import Access
from jobs.cli import main as regroup
from pipelines.arrow_types import stored
from schemas.gold import ADVICE, ALERTS, CLUSTER_PATTERNS, DEPLOYS, DIAGNOSES, PATTERNS, STORMS, VERDICTS
from testing import sample
from tests.whole_rows import of_table, whole

ALLOWED = {"ann": ["alpha-"], "bob": ["beta-"], "@ops": [""], "@both": ["alpha-", "beta-"], "nil": []}
TEAMS = ("alpha", "beta")
LONG = {team: f"{team}-{'x' * 600}" for team in TEAMS}


def of_team(now: int, team: str) -> sample.Rows:
    """Return rows of a team in which every name and text begins with the team's name."""
    out: sample.Rows = {}
    for group in (f"{team}-1", LONG[team]):
        h, t = sample.History(group, topic=f"{team}-topic", partitions=2), now - 25 * 60_000
        a, b = h.member(f"{team}-client-a", f"{team}-instance"), h.member(f"{team}-client-b")
        h.rebalance(t, [a], "first_member", by=a, reason=f"{team}-reason")
        h.rebalance(t + 300_000, [a, b], "member_joined", by=b, slowest=a, reason=f"{team}-reason")
        h.event(t + 400_000, "settings_changed", b, detail=f"{team}-detail")
        sample.merge(out, h.end(now, first_seen=t))
    return out


def storm(now: int, name: str, *teams: str) -> dict:
    return sample.storms(now)["storms"][0] | {
        "storm_id": name, "group_ids": [f"{team}-1" for team in teams], "explanation": " ".join(f"{t}-why" for t in teams),
        "differences": [{"attribute": "client_id", "value": f"{t}-client", "share": 1.0, "baseline": 0.1, "lift": 9.0} for t in teams],
    }  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory, now) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    rows = sample.merge({}, *(of_team(now, team) for team in TEAMS), sample.coverage(now), sample.moves(now))
    rows["storms"] = [storm(now, "of-alpha", "alpha"), storm(now, "of-beta", "beta"), storm(now, "of-both", *TEAMS)]
    rows["marks"] = [
        sample.announced(now)["marks"][0] | {"group_ids": groups, "text": f"{team}-mark", "marked_by": f"{team}-ci"}
        for team, groups in [
            *((team, [f"{team}-1"]) for team in TEAMS),
            # A mark that was announced for several groups has no `group_id`.
            *((team, [f"{team}-1", LONG[team]]) for team in TEAMS),
            ("both", [f"{team}-1" for team in TEAMS]),
            ("cluster", []),
        ]
    ]
    printed = {"cluster": sample.CLUSTER, "observed_at": now, "source": "poll", "kind": "error"}
    rows["admin_observations"] = [
        printed | {"subject": f"{team}-1", "body": json.dumps({"call": "DescribeGroups", "text": f"{team}-text"})}
        for team in TEAMS
    ]
    broken = {
        "cluster": sample.CLUSTER,
        "source": "__consumer_offsets",
        "log_epoch": 0,
        "source_partition": 1,
        "record_at": now,
    }
    rows["quarantine"] = [
        broken | {"source_offset": n, "reason": "bad_value", "detail": f"{team}-detail", "raw_key": team.encode()}
        for n, team in enumerate(TEAMS)
    ] + [
        broken | {"source_offset": 9 + n, "reason": "unknown_layout", "detail": f"{team}-line", "lines": 3, "raw_value": team.encode()}
        for n, team in enumerate(TEAMS)
    ]  # fmt: skip
    sample.write(folder, rows)
    about = {"cluster": sample.CLUSTER, "as_of": now, "window_start_at": now - 1, "window_end_at": now}
    for table in (ADVICE, DIAGNOSES, VERDICTS, DEPLOYS, PATTERNS, ALERTS):
        described = [_gold(table, team, about) for team in TEAMS]
        rows_of_table = stored([whole(of_table(row, table), table) for row in described], table)
        write_deltalake(f"{folder}/{table.name}", rows_of_table, mode="append")
    shape = CLUSTER_PATTERNS
    incidents = [_incident("alpha", now), _incident("beta", now), _incident("both", now, *TEAMS)]
    write_deltalake(f"{folder}/{shape.name}", stored([whole(row, shape) for row in incidents], shape))
    return folder


def _incident(name: str, now: int, *teams: str) -> dict:
    """Return a lasting pattern of a cluster that hit these teams, or else the team whose name is `name`."""
    hit = teams or (name,)
    return {
        "cluster": sample.CLUSTER, "pattern": "offsets_partition_down", "subject": f"{hit[-1]}-subject", "started_at": now,
        "last_at": now, "ended_at": None, "times": 1, "groups": len(hit), "group_ids": [f"{team}-1" for team in hit],
        "instances": [f"{team}-instance" for team in hit], "sources": ["log"], "evidence": "observed",
        "explanation": " ".join(f"{team}-why" for team in hit), "action": "Bring it back.",
    }  # fmt: skip


def _gold(table, team: str, about: dict) -> dict:
    numbers = {c.name: 1 for c in table.columns if c.type in ("INT", "BIGINT", "DOUBLE")}
    words = {c.name: f"{team}-{c.name}" for c in table.columns if c.type == "STRING"}
    times = {c.name: about["as_of"] for c in table.columns if c.type == "TIMESTAMP"}
    more = {
        "group_id": f"{team}-1", "action": "static_membership", "status": "suggested", "is_recommended": True, "subject": f"{team}-1",
        "cause": "deploy", "is_normal": False, "instances": [f"{team}-instance"], "evidence": "observed",
        "verdict": "broker", "hosts": [f"{team}-host"], "proof": [f"{team}-proof"], "incarnation": 0, "generation_id": 2,
        "settings": {"java": f"{team}-setting"}, "preconditions": [f"met: {team}-precondition"],
        "pattern": "rejoin_loop", "ended_at": None, "sources": ["topic"], "restarted": [f"{team}-instance"],
        "not_back": [f"{team}-client"], "not_back_hosts": [f"{team}-host"],
    }  # fmt: skip
    return numbers | words | times | about | more


@pytest.fixture(scope="module")
def client(shared, lake):
    access = Access.of(proxies="127.0.0.0/8", readers=ALLOWED)
    return create_app(lake(shared), access=access).server.test_client()


def headers(name: str, *groups: str) -> dict[str, str]:
    return {"X-Forwarded-User": name} | ({"X-Forwarded-Groups": ",".join(groups)} if groups else {})


def addresses() -> list[str]:
    """Return the addresses of every page, also for the groups, rebalances and storms of both teams."""
    asked = ["from=all", "from=now-1h", "from=all&q=a", "from=all&q=beta", "from=all&skip=1"]
    for team in TEAMS:
        asked += [
            f"from=all&cluster={sample.CLUSTER}&group={team}-1&incarnation=0&generation=2",
            f"from=all&cluster={sample.CLUSTER}&gid={group_hash(LONG[team])}&generation=2",
            f"from=all&storm=of-{team}",
        ]
    return [f"{path}?{query}" for path, query in product(PATHS, [*asked, "from=all&storm=of-both"])]


def every_response(client, reader: dict[str, str]):
    """Yield each address with what the reader gets from every callback, and from every endpoint that takes no name."""
    described = client.get("/_dash-dependencies", headers=reader).json
    grid = {"startRow": 0, "endRow": 100, "sortModel": [], "filterModel": {}}
    for address in addresses():
        path, _, query = address.partition("?")
        given = {"pathname": path, "search": f"?{query}", "getRowsRequest": grid, "n_intervals": 1}
        for callback in (each for each in described if not each["clientside_function"]):
            names = [each.rsplit(".", 1) for each in callback["output"].strip(".").split("...")]
            outputs = [{"id": json.loads(i) if i.startswith("{") else i, "property": p} for i, p in names]
            body = {
                "output": callback["output"],
                "outputs": outputs if callback["output"].startswith("..") else outputs[0],
                "inputs": [_filled(each, given) for each in callback["inputs"]],
                "state": [_filled(each, given) for each in callback["state"]],
                "changedPropIds": [],
            }
            yield address, client.post("/_dash-update-component", json=body, headers=reader).get_data(as_text=True)
        for rule in client.application.url_map.iter_rules():
            if "GET" in rule.methods and not rule.arguments:
                yield address, client.get(f"{rule}?{query}", headers=reader).data.decode("utf-8", "replace")


def _filled(each: dict, given: dict):
    if "ALL" in each["id"]:
        return []
    identity = json.loads(each["id"]) if each["id"].startswith("{") else each["id"]
    return {"id": identity, "property": each["property"], "value": given.get(each["property"])}


SECRETS = (
    "topic",
    "client",
    "instance",
    "reason",
    "detail",
    "why",
    "mark",
    "ci",
    "text",
    "setting",
    "explanation",
    "x",
)


@pytest.mark.parametrize(("name", "mine", "others"), [("ann", "alpha", "beta"), ("bob", "beta", "alpha")])
def test_no_page_and_no_endpoint_tells_a_reader_of_anothers_groups(client, name, mine, others):
    own = 0
    for address, text in every_response(client, headers(name)):
        assert "Something went wrong" not in text, address
        for word in SECRETS:
            assert f"{others}-{word}" not in text, (address, word)
        # A response may repeat what its own address contains.
        if others not in address:
            assert f"{others}-" not in text, address
        own += f"{mine}-client" in text or f"{mine}-1" in text
    assert own > 20


@pytest.mark.parametrize(("name", "mine", "others"), [("ann", "alpha", "beta"), ("bob", "beta", "alpha")])
def test_no_question_of_a_program_tells_a_reader_of_anothers_groups(shared, lake, name, mine, others):
    access = Access.of(proxies="127.0.0.0/8", readers=ALLOWED)
    client = create_app(lake(shared), access=access).server.test_client()  # of its own: questions are limited
    own = 0
    for question, team in product(QUESTIONS, (mine, others, "both")):
        here = {"group": f"{team}-1", "generation": 2, "incarnation": 0, "last": "all", "days": 366}
        storm = [{"storm": f"of-{team}"}] if question.name == "incident" else []
        for values in [here, here | {"episode": 1}, *storm]:
            query = {each.name: values[each.name] for each in question.parameters if each.name in values}
            response = client.get(f"/api/v1/{question.name}", query_string=query, headers=headers(name))
            assert response.status_code in {200, 404}, (query, response.text)
            for word in SECRETS:
                assert f"{others}-{word}" not in response.text, (query, word)
            if team != others:
                assert f"{others}-" not in response.text, query
            own += f"{mine}-1" in response.text
    assert own > 10


@pytest.mark.parametrize("who", [("eve",), ("nil",), ("@ops",), ("eve", "nobody"), ("ann@ops",)])
def test_who_is_not_named_sees_nothing_and_learns_why(client, who):
    for address, text in every_response(client, headers(*who)):
        if not any(team in address for team in TEAMS):
            assert "alpha-" not in text, address
            assert "beta-" not in text, address
    assert "No groups for you" in "".join(text for _, text in every_response(client, headers(*who)))


@pytest.mark.parametrize("who", [("eve", "ops"), ("eve", "both"), ("eve", "other", " both ")])
def test_a_reader_may_be_named_by_a_group_that_the_proxy_tells(client, who):
    described = "".join(text for _, text in every_response(client, headers(*who)))
    assert all(f"{team}-client" in described and f"{team}-explanation" in described for team in TEAMS)


def test_a_mark_is_seen_by_those_it_is_about_and_names_them_no_other_group(shared, lake):
    def marks(*prefixes):
        sql = "SELECT text, group_ids FROM marks ORDER BY text, len(group_ids) LIMIT $cap"
        return [
            (row["text"], list(row["group_ids"])) for row in lake(shared).query(sql, ["marks"], 9, {}, prefixes).rows
        ]

    mine = [("alpha-mark", ["alpha-1"]), ("alpha-mark", ["alpha-1", LONG["alpha"]])]
    assert [*mine, ("both-mark", ["alpha-1"]), ("cluster-mark", [])] == marks("alpha-")
    assert [("cluster-mark", [])] == marks("gamma-")
    assert [] == marks()


def test_a_mark_of_an_earlier_regroup_that_may_be_about_any_group_is_hidden(tmp_path, now, lake):
    earlier = sample.announced(now)["marks"][0] | {"group_ids": None, "group_id": None}
    sample.write(tmp_path, {"marks": [earlier]})
    sql = "SELECT text FROM marks LIMIT $cap"
    assert [] == lake(tmp_path).query(sql, ["marks"], 9, {}, ("alpha-",)).rows
    assert [{"text": earlier["text"]}] == lake(tmp_path).query(sql, ["marks"], 9, {}, None).rows


def test_of_a_storm_that_hit_others_too_nothing_but_its_size_is_reported(shared, lake):
    def storms(*prefixes):
        sql = "SELECT storm_id, group_ids, groups, explanation, len(differences) AS differing FROM storms ORDER BY 1 LIMIT $cap"
        return [tuple(row.values()) for row in lake(shared).query(sql, ["storms"], 9, {}, prefixes).rows]

    own, shared_storm = sorted(storms("alpha-"), key=lambda row: row[0] != "of-alpha")
    assert ("of-alpha", ["alpha-1"], 2, "alpha-why", 1) == own
    assert (["alpha-1"], 2, None, 0) == shared_storm[1:]
    assert [] == storms()
    assert [] == storms("gamma-")
    assert ("of-both", ["alpha-1", "beta-1"], 2, "alpha-why beta-why", 2) in storms("alpha", "b")


SHOWN_OF_OTHERS = {
    "cluster", "storm_id", "scope", "started_at", "detected_at", "ended_at", "is_open", "groups", "group_ids",
    "lost_resource_seconds_min", "lost_resource_seconds", "lost_resource_seconds_max",
}  # fmt: skip


def of_both(lake, *prefixes: str) -> dict:
    sql = "SELECT * FROM storms WHERE len(group_ids) = 1 AND explanation IS NULL LIMIT $cap"
    (row,) = lake.query(sql, ["storms"], 9, {}, prefixes).rows
    return row


def test_every_other_column_of_a_storm_that_hit_others_too_is_hidden(shared, lake):
    row = of_both(lake(shared), "alpha-")
    assert set(STORMS.names) == set(row)
    assert {name: [] if name == "differences" else None for name in set(row) - SHOWN_OF_OTHERS} == {
        name: value for name, value in row.items() if name not in SHOWN_OF_OTHERS
    }


def test_a_column_that_nobody_has_thought_of_yet_is_hidden():
    for name, mask in MASKED.items():
        sql = filtered_sql(name, [*mask.shown, *mask.instead, "new_column"], 1)
        assert f"CASE WHEN {mask.whole_if} THEN new_column END AS new_column" in sql
        assert " new_column," not in sql.replace(" AS new_column", "")


@pytest.mark.parametrize("scope", ["fleet", "group"])
def test_a_list_of_names_finds_out_nobody_from_the_id_of_a_storm(tmp_path, now, lake, scope):
    began, names = now - 600_000, [f"{team}-{n}" for team in TEAMS for n in range(50)]
    digests = {
        sha256(f"{sample.CLUSTER}\n{scope}\n{began}\n{name}".encode()).hexdigest()[:length]
        for name in names
        for length in (16, 32, 64)
    }
    storm_id = sha256(f"{sample.CLUSTER}\n{scope}\n{began}\nbeta-7".encode()).hexdigest()[:16]
    described = storm(now, storm_id, "alpha", "beta") | {"group_ids": ["beta-7", "alpha-1"], "started_at": began}
    sample.write(tmp_path, sample.merge(of_team(now, "alpha"), {"storms": [described]}))
    seen = of_both(lake(tmp_path), "alpha-")["storm_id"]
    assert seen not in digests
    assert seen not in {sha256(each.encode()).hexdigest()[: len(seen)] for each in digests}
    # Asking for an id shows no more than the id itself does.
    access = Access.of(proxies="127.0.0.0/8", readers=ALLOWED)
    store = create_app(lake(tmp_path), access=access).server.test_client()
    for wanted, response in ((seen, "groups that you may not see"), (storm_id, "No storm has this id")):
        body = shown_to(store, f"?storm={wanted}", "ann")
        assert response in body
        assert "beta" not in body


def shown_to(client, search: str, name: str) -> str:
    output = next(
        each["output"] for each in client.get("/_dash-dependencies", headers=headers(name)).json
        if "made.data" in each["output"] and not each["clientside_function"]
    )  # fmt: skip
    names = [each.rsplit(".", 1) for each in output.strip(".").split("...")]
    given = {"pathname": "/storms", "search": search, "n_intervals": 1}
    inputs = [("url", "pathname"), ("url", "search"), ("tick", "n_intervals")]
    body = {
        "output": output,
        "outputs": [{"id": i, "property": p} for i, p in names],
        "inputs": [{"id": i, "property": p, "value": given[p]} for i, p in inputs],
        "state": [{"id": "seen", "property": "data", "value": None}],
        "changedPropIds": [],
    }
    response = client.post("/_dash-update-component", json=body, headers=headers(name))
    assert 200 == response.status_code
    return response.get_data(as_text=True)


def test_the_pages_say_that_they_hide_why_and_nothing_of_the_cause(client):
    listed = shown_to(client, "?from=all", "ann")
    assert "groups that you may not see" in listed
    assert "of-both" not in listed


@pytest.mark.parametrize("name", ["token", " token", "token "])
def test_a_user_whom_the_proxy_calls_token_is_not_the_tokens_reader(shared, lake, name):
    access = Access.of(proxies="127.0.0.0/8", readers={"token": [""], "ann": ["alpha-"]})
    client = create_app(lake(shared), access=access).server.test_client()
    assert [] == client.get("/search?q=a", headers=headers(name)).json["groups"]


@pytest.mark.parametrize(
    "described",
    [
        {"X-Forwarded-User": "ann\xa0"}, {"X-Forwarded-User": "\x85ann"}, {"X-Forwarded-User": "\xa0@ops"},
        {"X-Forwarded-User": "ann, eve"}, {"X-Forwarded-User": "ANN"}, {"X-Forwarded-User": "@ops"},
        {"X-Forwarded-User": "eve", "X-Forwarded-Groups": "\xa0ops"},
        {"X-Forwarded-User": "eve", "X-Forwarded-Groups": "ops\x1f"},
        {"X-Forwarded-User": "eve", "X-Forwarded-Groups": "@ops, ops/admin, OPS"},
    ],
)  # fmt: skip
def test_a_name_that_only_resembles_a_readers_is_nobodys(client, described):
    assert [] == client.get("/search?q=a", headers=described).json["groups"]


def test_that_something_could_not_be_read_is_reported_to_everybody(client):
    described = "".join(
        text for address, text in every_response(client, headers("ann")) if address.startswith("/health")
    )
    assert "bad_value" in described
    assert "2 records in quarantine" in described
    assert "no call to a broker refused" not in described
    assert "log lines in an unknown layout" in described
    assert "Set events_layout" in described
    assert not any(f"{team}-line" in described for team in TEAMS)


def test_that_a_job_failed_or_a_rule_is_broken_is_reported_to_everybody_but_not_by_whose_group(tmp_path, now):
    sample.write(tmp_path, sample.operations(now, "beta-1"))
    lake = LocalLake(tmp_path)
    for table, described, hidden in (("job_runs", "outcome", "error"), ("quality_results", "rows_failed", "examples")):
        sql = f"SELECT * FROM {table} LIMIT $cap"
        (row,) = lake.query(sql, [table], 9, {}, ("alpha-",)).rows
        assert (row[described] in ("failed", 1), row[hidden]) == (True, None)


def test_of_a_pattern_that_hit_others_too_nothing_but_its_times_and_size_is_shown(shared, lake):
    sql = "SELECT * FROM cluster_patterns ORDER BY len(group_ids), groups LIMIT $cap"
    own, both = lake(shared).query(sql, ["cluster_patterns"], 9, {}, ("alpha-",)).rows
    assert ("alpha-subject", ["alpha-1"], "alpha-why") == (own["subject"], own["group_ids"], own["explanation"])
    assert (["alpha-1"], 2, "Bring it back.") == (both["group_ids"], both["groups"], both["action"])
    assert {"subject", "instances", "explanation"} == {
        name for name in ("subject", "instances", "explanation") if both[name] is None
    }
    assert [] == lake(shared).query(sql, ["cluster_patterns"], 9, {}, ("gamma-",)).rows


def test_every_table_is_restricted_or_knows_no_group():
    for table in TABLES:
        has_groups = "group_id" in table.names or table.name in (*MASKED, "storms", "alerts")
        assert has_groups is not (table.name in WHOLE), table.name


@pytest.mark.parametrize("prefix", ["'", "%", "_", "alpha-' OR 'a'='a", "$cap", "\\", "", "ALPHA-"])
def test_a_prefix_is_compared_as_it_is(shared, prefix, lake):
    sql = "SELECT count(*) AS n FROM groups LIMIT $cap"
    lake = ReadersLake(lake(shared), lambda: Readers({"r": [prefix]}).prefixes(["r"]))
    assert [{"n": 4 if prefix == "" else 0}] == lake.query(sql, ["groups"], 1, {}).rows


def test_nobody_named_means_that_everybody_sees_everything(shared, lake):
    described = create_app(lake(shared)).server.test_client().get("/search?q=1", base_url="http://127.0.0.1").json
    assert {"alpha-1", "beta-1"} <= {group["label"] for group in described["groups"]}


def test_the_tokens_reader_is_called_token(shared, lake):
    access = Access.of(token="a-token-of-some-length", readers={"token": ["beta-"]})
    client = create_app(lake(shared), access=access).server.test_client()
    bearer = {"Authorization": "Bearer a-token-of-some-length"}
    described = client.get("/search?q=a", headers=bearer).json
    assert {"beta-1"} == {group["label"] for group in described["groups"] if "x" not in group["label"]}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('[readers]\nann = "alpha-"', "ann must be a list of prefixes"),
        ("readers = 5", "must be a table"),
        ('[readers]\nann = ["alpha-"]', "requires that readers are identified"),
    ],
)
def test_a_setting_that_would_show_too_much_or_nothing_is_refused_with_a_sentence(
    tmp_path, capsys, monkeypatch, text, printed
):
    monkeypatch.delenv("REGROUP_PAGES_TOKEN", raising=False)
    (tmp_path / "readers.toml").write_text(text)
    assert 2 == main(["--warehouse", str(tmp_path), "--readers", str(tmp_path / "readers.toml"), "--port", "0"])
    assert printed in capsys.readouterr().err
    assert 2 == regroup(["serve", "--config", str(tmp_path / "readers.toml"), "--warehouse", str(tmp_path)])
    assert printed in capsys.readouterr().err
