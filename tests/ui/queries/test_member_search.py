"""Groups are found by the hosts, ids and topics of their members, and restricted readers find only theirs."""

from __future__ import annotations

import pytest

from dashboards.app import create_app
from dashboards.queries.member_search import member_hits
from testing.warehouses.recorded import rows_of, store
from tests.ui.web.test_search import HOSTILE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("members")
    rows = rows_of({"churn": "eager_churn"})
    strange = [
        row | {"group_id": f"strange-{n}", "client_id": text, "client_host": f"/{text}", "subscribed_topics": [text]}
        for n, text in enumerate(HOSTILE)
        for row in rows["generation_members"][:1]
    ]
    rows["generation_members"] += strange
    store(made, rows)
    return made


@pytest.fixture(scope="module")
def members(folder, lake):
    return lake(folder)


def test_a_host_leads_to_its_groups(members) -> None:
    found = member_hits(members, "127.0.0.1")
    assert {hit.kind for hit in found} == {"host"}
    assert {hit.group for hit in found} >= {"imports-joiner", "pricing-loader", "routing-enricher", "scoring-worker"}


def test_a_client_id_and_a_topic_lead_to_their_group(members) -> None:
    assert ("client id", "imports-joiner-2", "imports-joiner", "churn") in member_hits(members, "IMPORTS-JOINER-2")
    topics = [hit for hit in member_hits(members, "routing-indexer") if hit.kind == "topic"]
    assert {hit.value for hit in topics} == {"routing-indexer-in"}
    assert len({hit.group for hit in topics}) == 4


def test_two_letters_ask_for_nothing(members) -> None:
    assert member_hits(members, " im ") == []


@pytest.mark.parametrize("text", [text for text in HOSTILE if len(text.strip()) > 2 and "\n" not in text])
def test_every_character_means_itself(members, text) -> None:
    assert text in {hit.value.removeprefix("/") for hit in member_hits(members, text)}


def test_programs_get_labels_and_addresses_that_keep_the_range(folder, lake) -> None:
    client = create_app(lake(folder)).server.test_client()
    answer = client.get("/search/members?q=joiner-2&from=now-6h", headers={"Host": "127.0.0.1"}).json
    assert answer["groups"][0] == {
        "label": "client id imports-joiner-2",
        "cluster": "imports-joiner · churn",
        "href": "/group?from=now-6h&cluster=churn&group=imports-joiner",
    }
