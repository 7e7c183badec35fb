"""Groups that assign other things than topic partitions, or nothing: Kafka Streams, Schema Registry, unknown types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.silver.handmade import START, broker_line, consumer, generation, member, member_id, rows

NEVER = (1 << 63) - 1


def streams(
    name: str,
    partitions: list[int],
    *,
    standby: Sequence[int] = (),
    again: int = NEVER,
    error: int = 0,
) -> dict[str, Any]:
    """A member with its active partitions of `orders` and the standby tasks 0_n."""
    base = consumer(name, partitions, owned=partitions)
    tasks = [{"topicGroupId": 0, "partition": p, "namedTopology": "", "partitions": []} for p in standby]
    data = {"version": 11, "standbyTasks": tasks, "errorCode": error, "nextRebalanceMs": again}
    return base | {"assignment": base["assignment"] | {"userData": data}}


def of_streams(number: int, at: int, *members: dict[str, Any]) -> dict[str, Any]:
    return generation(number, at, members, protocol="stream")


def test_a_streams_group_moves_partitions_and_shows_its_standby_tasks() -> None:
    found = rows([of_streams(1, 0, streams("a", [0], standby=[1]), streams("b", [1], standby=[0]))])
    assert [r["group_type"] for r in found["generations"]] == ["streams"]
    assert [(r["assigned"], r["standby"]) for r in found["generation_members"]] == [
        ([{"name": "orders", "index": 0}], [{"name": "0", "index": 1}]),
        ([{"name": "orders", "index": 1}], [{"name": "0", "index": 0}]),
    ]


def test_members_that_come_together_when_they_were_told_to_are_probing() -> None:
    described = START + 600_000
    first = of_streams(1, 0, streams("a", [0, 1], again=described), streams("b", [], standby=[1], again=described))
    second = of_streams(2, 600_050, streams("a", [0]), streams("b", [1]))
    assert [r["trigger"] for r in rows([first, second])["generations"]] == ["first_member", "probing"]


def test_a_probing_rebalance_is_none_before_its_time() -> None:
    described = START + 600_000
    first = of_streams(1, 0, streams("a", [0, 1], again=described), streams("b", [], standby=[1], again=described))
    second = of_streams(2, 60_000, streams("a", [0, 1]), streams("b", []))
    assert [r["trigger"] for r in rows([first, second])["generations"]] == ["first_member", "unknown"]


def test_a_second_step_at_once_is_no_probing() -> None:
    first = of_streams(1, 0, streams("a", [0], again=0), streams("b", [1], again=0))
    second = of_streams(2, 3_000, streams("a", [0]), streams("b", [1]))
    assert [r["trigger"] for r in rows([first, second])["generations"]] == ["first_member", "cooperative_followup"]


@pytest.mark.parametrize(
    ("printed", "trigger"), [("1795246600000", "probing"), ("0", "cooperative_followup")], ids=["later", "at once"]
)
def test_the_clients_reason_tells_probing_from_a_second_step(printed, trigger) -> None:
    both = of_streams(1, 0, streams("a", [0])), of_streams(2, 600_050, streams("a", [0]))
    reason = (
        f"Leader {member_id('a')} re-joining group during Stable; client reason: "
        f"triggered followup rebalance scheduled for {printed}"
    )
    line = broker_line(
        600_040,
        f"Preparing to rebalance group orders in state PreparingRebalance with old generation 1 (reason: {reason}).",
    )
    last = rows(both, [line])["generations"][-1]
    assert (last["trigger"], last["trigger_evidence"]) == (trigger, "observed")


@pytest.mark.parametrize(("error", "kind"), [(1, "failed_rebalance"), (2, "settings_changed"), (4, "failed_rebalance")])
def test_an_error_of_the_streams_assignor_is_an_event(error, kind) -> None:
    found = rows([of_streams(1, 0, streams("a", [], error=error))])
    assert kind in [e["kind"] for e in found["group_events"] if e["event_at"] == START + 5]


def registries(number: int, at: int, elected: str | None, *names: str, error: int = 0) -> dict[str, Any]:
    identity = {"host": f"{elected}.example", "port": 8081, "scheme": "https"} if elected else None
    assignment = {
        "version": 1,
        "error": error,
        "master": member_id(elected) if elected else None,
        "master_identity": identity,
    }
    members = [member(n, {"version": 1, "host": f"{n}.example", "port": 8081}, assignment) for n in names]
    return generation(number, at, members, protocol_type="sr", protocol="v0")


def test_a_registry_group_shows_whom_it_elected_not_who_leads_the_kafka_group() -> None:
    found = rows([registries(1, 0, "b", "a", "b"), registries(2, 9_000, "a", "a"), registries(3, 9_500, "a", "a", "c")])
    assert [r["group_type"] for r in found["generations"]] == ["schema_registry"] * 3
    assert [r["rebalance_mode"] for r in found["generations"]] == ["none"] * 3
    assert [
        (START + 5, member_id("b"), "elected registry https://b.example:8081"),
        (START + 9_005, member_id("a"), "elected registry https://a.example:8081"),
    ] == [(e["event_at"], e["member_id"], e["detail"]) for e in found["group_events"] if e["kind"] == "leader_changed"]
    assert found["stalls"] == []


def test_a_failed_election_is_shown() -> None:
    found = rows([registries(1, 0, None, "a", "b", error=1)])
    assert {"two registries have the same URL: none was elected", "no registry elected"} == {
        e["detail"] for e in found["group_events"] if e["event_at"] == START + 5
    }


def test_an_unknown_protocol_shows_members_and_claims_no_stall() -> None:
    def closed(name: str) -> dict[str, Any]:
        return member(name, {"opaque": True, "size": 4, "sha256": "a"}, {"opaque": True, "size": 8, "sha256": "b"})

    found = rows(
        [generation(1, 0, [closed("a"), closed("b")], protocol_type="grid"),
         generation(2, 5_000, [closed("a")], protocol_type="grid")]
    )  # fmt: skip
    assert [(r["group_type"], r["rebalance_mode"], r["member_count"]) for r in found["generations"]] == [
        ("other", "unknown", 2),
        ("other", "unknown", 1),
    ]
    assert [r["assigned"] for r in found["generation_members"]] == [[], [], []]
    assert found["stalls"] == []
