"""Names of any length leave the rest of a sentence or a column readable."""

from __future__ import annotations

import pytest

from dashboards.text import host
from dashboards.views.sentences import VERBS, folded, numbered, trigger_with_verb_first
from schemas.states import Evidence, Trigger
from schemas.written import EN_DASH

LONG = "billing-api-eu-west-1-7d4b9c6f5-x2lkq@consumer-0-of-the-orders"
MEMBER = f"{LONG}-6f1f7a0e-0000-4000-8000-000000000000"


def generation(trigger: str, member: str | None = MEMBER, evidence: str = Evidence.OBSERVED) -> dict[str, str | None]:
    return {"trigger": trigger, "trigger_member_id": member, "trigger_evidence": evidence}


@pytest.mark.parametrize("kind", VERBS)
def test_a_long_client_id_comes_after_the_verb(kind):
    assert trigger_with_verb_first(generation(kind), {MEMBER: LONG}) == f"{VERBS[kind]}: {LONG}"


def test_an_inferred_trigger_says_so_first():
    inferred = generation(Trigger.MEMBER_LEFT, evidence=Evidence.INFERRED)
    assert "probably left: orders" == trigger_with_verb_first(inferred, {MEMBER: "orders"})


def test_a_trigger_without_a_member_is_a_sentence():
    assert "why is not known" == trigger_with_verb_first(generation(Trigger.UNKNOWN, None), {})
    assert "a member left" == trigger_with_verb_first(generation(Trigger.MEMBER_LEFT, None), {})


def test_a_row_says_how_many_generations_it_folded_count():
    one = {"generation_id": 5, "group_protocol": "classic"}
    assert ("", "generation 5") == (folded(one), numbered(one))
    assert "epoch 5" == numbered(one | {"group_protocol": "consumer", "folded_count": None})
    assert f"generations 5{EN_DASH}1504: 1,500 that differ in number and times only" == folded(
        one | {"folded_count": 1_500, "last_generation_id": 1_504}
    )


def test_a_host_has_no_leading_slash():
    assert ["10.0.0.7", "pod-3/10.0.0.7"] == [host("/10.0.0.7"), host("pod-3/10.0.0.7")]
