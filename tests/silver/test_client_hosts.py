"""Silver has clients' addresses only as the policy stores them."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

import pytest

from jobs.replay import Capture
from pipelines.gold.rows import AnalysisConfig, broker, gold_rows
from pipelines.silver.client_hosts import TOKEN, ClientHosts, HostPolicy
from pipelines.silver.rows import silver_rows
from schemas.rows import SilverRows
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, histories, silver_of, with_duplicates
from tests.silver.test_determinism import comparable

TRUNCATE = ClientHosts(policy=HostPolicy.TRUNCATE)
HASH = ClientHosts(policy=HostPolicy.HASH, key=b"a key")
NAMES = ("share_registry", "connect", "streams", "migration", "eager_churn")
RECORDED = ("127.0.0.1", "localhost")


def described(rows: SilverRows) -> str:
    """Return all text of silver, and of the gold that is made from it."""
    out, of_group = [repr(rows)], defaultdict(lambda: defaultdict(list))
    for table, found in rows.items():
        for row in found:
            of_group[row["group_id"]][table].append(row)
    until = max(row["last_record_at"] or 0 for row in rows["groups"])
    known = {"broker": broker({}), "config": AnalysisConfig(), "since_ms": 0, "until_ms": until}
    for group, silver in of_group.items():
        out.append(repr(gold_rows("kafka", group, {name: silver[name] for name in rows}, **known)))
    return "\n".join(out)


@pytest.mark.parametrize("hosts", [TRUNCATE, HASH], ids=["truncate", "hash"])
@pytest.mark.parametrize("name", NAMES)
def test_no_recorded_address_is_in_silver_or_gold(name, hosts) -> None:
    assert RECORDED[0] in repr(silver_of(batches(name), name)), "else this would show nothing"
    found = described(silver_of(batches(name), name, hosts))
    assert [host for host in RECORDED if host in found] == []


@pytest.mark.parametrize("hosts", [TRUNCATE, HASH], ids=["truncate", "hash"])
@pytest.mark.parametrize("name", ["share_registry", "streams", "connect"])
def test_no_address_planted_in_any_field_that_can_hold_one_is_in_silver(name, hosts) -> None:
    planted = ("/10.77.1.9", "worker-77.eu.example.com/10.77.1.9", "/2001:db8:77:0:0:0:0:9", "worker-77.eu.example.com")
    for plant in planted:
        for history in histories(batches(name), Capture(CAPTURES / name).meta):
            with_plant = replace(history, records=[_planted(record, plant) for record in history.records])
            found = repr(silver_rows(with_plant, 10_000, hosts=hosts))
            assert not [part for part in ("10.77.1.9", "worker-77", "db8:77:0", "::9") if part in found]


def _planted(record, plant):
    text = json.dumps(record.value)
    for host in ("/127.0.0.1", *RECORDED):
        text = text.replace(json.dumps(host), json.dumps(plant))
    return replace(record, value=json.loads(text))


def test_kept_hosts_are_as_kafka_stored_them() -> None:
    rows = silver_of(batches("connect"), "connect")
    assert {row["client_host"] for row in rows["generation_members"]} == {"/127.0.0.1"}
    assert comparable(rows) == comparable(silver_of(batches("connect"), "connect", ClientHosts()))


@pytest.mark.parametrize("hosts", [TRUNCATE, HASH], ids=["truncate", "hash"])
def test_any_batching_and_duplication_gives_the_same_tokens(hosts) -> None:
    whole = silver_of(batches("share_registry"), "share_registry", hosts)
    parts = with_duplicates(batches("share_registry", count=7, seed=2), 0.1, 2)
    assert comparable(whole) == comparable(silver_of(parts, "share_registry", hosts))


def test_a_policy_changes_nothing_but_hosts() -> None:
    kept, hashed = (silver_of(batches("connect"), "connect", hosts) for hosts in (ClientHosts(), HASH))
    for rows in (*kept.values(), *hashed.values()):
        for row in rows:
            row.pop("client_host", None)
    assert comparable(kept) == comparable(hashed)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("/10.1.2.3", "10.1.2.0/24"),
        ("10.1.2.3", "10.1.2.0/24"),
        ("/0:0:0:0:0:ffff:a01:203", "10.1.2.0/24"),
        ("/2001:db8:1:2:0:0:0:3", "2001:db8:1::/48"),
        ("/fe80:0:0:0:1:2:3:4%eth0", "fe80::/48"),
        ("a.eu.example.com", "*.eu.example.com"),
        ("a.eu.example.com/10.1.2.3", "10.1.2.0/24"),
        ("localhost", "*"),
        ("", ""),
        ("/", "/"),
    ],
)
def test_a_truncated_host_is_its_network_or_domain(host, expected) -> None:
    assert TRUNCATE.of(host) == expected


def test_a_host_has_one_token_however_it_is_written_and_another_under_another_key() -> None:
    written = ("/10.1.2.3", "10.1.2.3", "a.example.com/10.1.2.3", "/0:0:0:0:0:ffff:a01:203")
    (token,) = {HASH.of(host) for host in written}
    assert token.startswith(TOKEN)
    assert token != HASH.of("/10.1.2.4")
    assert token != ClientHosts(policy=HostPolicy.HASH, key=b"another").of("/10.1.2.3")
    assert HASH.of("A.example.com.") == HASH.of("a.example.com")


@pytest.mark.parametrize("host", ["/10.1.2.3", "/2001:db8:1:2:0:0:0:3", "a.eu.example.com", "localhost", ""])
def test_what_was_hidden_before_stays_as_it_is(host) -> None:
    for first in (TRUNCATE, HASH):
        hidden = first.of(host)
        assert [again.of(hidden) for again in (TRUNCATE, HASH)] == [hidden, hidden]


def test_the_key_is_not_printed() -> None:
    assert "a key" not in repr(HASH)
