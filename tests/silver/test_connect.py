"""What Connect workers run, what is lost with one, what waits for it, and when it runs again."""

from __future__ import annotations

from itertools import pairwise, permutations
from statistics import median
from typing import Any

import pytest

from schemas.states import StallCause
from testing.warehouses.rebuilding import batches, silver_of, truth
from tests.silver.handmade import START, broker_line, member_id, rows, synced_line, worker, worker_line, workers

BOTH = {"orders": [-1, 0], "audit": [-1, 0]}
ORDERS, AUDIT = {"orders": [-1, 0]}, {"audit": [-1, 0]}


def stalls(found: dict[str, Any], **where: Any) -> list[tuple[str, int, str, int | None, int | None]]:
    """(connector, task, cause, generation it stopped by, generation it ran again from)."""
    return [
        (s["name"], s["index"], s["cause"], s["generation_id"], s["resumed_generation_id"])
        for s in sorted(found["stalls"], key=lambda s: (s["stopped_by_offset"], s["name"], s["index"]))
        if all(s[column] == value for column, value in where.items())
    ]


def column(found: dict[str, Any], name: str) -> list[Any]:
    return [row[name] for row in found["generations"]]


def test_a_worker_runs_what_it_said_it_ran_without_what_was_revoked_with_what_was_given() -> None:
    found = rows([workers(1, 0, worker("a", ran=BOTH, revoked={"orders": [0]}, given={"files": [-1, 2]}, delay=40))])
    (row,) = found["generation_members"]
    assert [("audit", -1), ("audit", 0), ("files", -1), ("files", 2), ("orders", -1)] == [
        (r["name"], r["index"]) for r in row["assigned"]
    ]
    assert [("audit", -1), ("audit", 0), ("orders", -1), ("orders", 0)] == [
        (r["name"], r["index"]) for r in row["owned"]
    ]
    assert row["connect_delay_ms"] == 40
    assert column(found, "rebalance_mode") == ["incremental"]
    assert column(found, "group_type") == ["connect"]


LEAVES = (
    workers(1, 0, worker("a", given=ORDERS), worker("b", given=AUDIT)),
    workers(2, 20_000, worker("a", ran=ORDERS, delay=300_000)),
)
LEFT = broker_line(
    19_990,
    f"[Group orders] Member {member_id('b')} has left group through explicit `LeaveGroup` request; client reason: x",
)


def test_lost_work_waits_until_the_delay_is_over() -> None:
    found = rows([*LEAVES, workers(3, 320_010, worker("a", ran=ORDERS, given=AUDIT))], [LEFT])
    assert stalls(found) == [
        ("audit", -1, StallCause.CONNECT_DELAY, 2, 3),
        ("audit", 0, StallCause.CONNECT_DELAY, 2, 3),
    ]
    assert column(found, "trigger")[1:] == ["member_left", "connect_delay_expired"]
    (stall, _) = found["stalls"]
    assert (stall["stopped_at_latest"], stall["resumed_at_earliest"]) == (START + 19_990, START + 320_015)
    assert stall["stopped_ms"] == 320_015 - 19_990


def test_a_departure_tells_what_waits_and_until_when() -> None:
    found = rows(LEAVES, [LEFT])
    (left,) = [e for e in found["group_events"] if e["kind"] == "left"]
    assert left["detail"] == "x; 2 connectors and tasks wait for it until 2026-11-21 07:32:00.005+00:00"


def test_a_worker_that_returns_within_the_delay_still_waits_for_the_rest_of_it() -> None:
    returns = workers(3, 30_000, worker("a", ran=ORDERS, delay=290_000), worker("c", delay=290_000))
    ends = workers(4, 320_010, worker("a", ran=ORDERS), worker("c", ran={}, given=AUDIT))
    found = rows([*LEAVES, returns, ends], [LEFT])
    assert stalls(found) == [
        ("audit", -1, StallCause.CONNECT_DELAY, 2, 4),
        ("audit", 0, StallCause.CONNECT_DELAY, 2, 4),
    ]
    assert column(found, "trigger")[2:] == ["member_joined", "connect_delay_expired"]
    assert {s["to_member_id"] for s in found["stalls"]} == {member_id("c")}


def test_a_killed_worker_is_lost_from_its_last_heartbeat_on() -> None:
    expired = broker_line(19_990, f"Member {member_id('b')} in group orders has failed, removing it from the group.")
    found = rows([*LEAVES, workers(3, 320_010, worker("a", ran=ORDERS, given=AUDIT))], [expired])
    assert {s["cause"] for s in found["stalls"]} == {StallCause.MEMBER_LOST}
    for stall in found["stalls"]:
        assert stall["stopped_at_earliest"] == START + 9_990
        assert START + 9_990 <= stall["resumed_at_earliest"] - stall["stopped_ms"] <= START + 13_000


def test_a_revoked_task_is_moved_and_a_backoff_without_lost_work_is_no_delay() -> None:
    found = rows(
        [
            workers(1, 0, worker("a", given=BOTH)),
            workers(2, 1_000, worker("a", ran=BOTH, revoked=AUDIT), worker("b")),
            workers(3, 1_500, worker("a", ran=ORDERS, delay=40), worker("b", ran={}, given=AUDIT, delay=40)),
            workers(4, 1_600, worker("a", ran=ORDERS), worker("b", ran=AUDIT)),
        ]
    )
    assert stalls(found) == [("audit", -1, StallCause.MOVED, 2, 3), ("audit", 0, StallCause.MOVED, 2, 3)]
    assert column(found, "trigger")[2:] == ["cooperative_followup", "cooperative_followup"]


def test_work_that_is_given_on_at_once_did_not_wait() -> None:
    found = rows(
        [
            workers(1, 0, worker("a", given=ORDERS), worker("b", given=AUDIT)),
            workers(2, 9_000, worker("b", ran=AUDIT, given=ORDERS)),
        ]
    )
    assert [s[2:] for s in stalls(found)] == [(StallCause.MOVED, 2, 2)] * 2


def test_a_deleted_connector_is_missed_by_nobody() -> None:
    found = rows(
        [
            workers(1, 0, worker("a", given=BOTH, config=10)),
            workers(2, 5_000, worker("a", ran=BOTH, revoked=AUDIT, config=11)),
            workers(3, 5_100, worker("a", ran=ORDERS, config=11)),
        ]
    )
    assert stalls(found) == []
    assert column(found, "trigger")[1:] == ["metadata_changed", "cooperative_followup"]


def test_a_connector_deleted_while_its_worker_is_awaited_is_missed_by_nobody() -> None:
    again = workers(3, 320_010, worker("a", ran=ORDERS, given={"audit": [-1]}, config=11))
    assert stalls(rows([*LEAVES, again])) == [("audit", -1, StallCause.CONNECT_DELAY, 2, 3)]


@pytest.mark.parametrize("still", [{"config": 9}, {"error": 1}])
def test_a_leader_that_has_not_read_the_configuration_deletes_nothing(still) -> None:
    behind = workers(3, 320_010, worker("a", ran=ORDERS, **still))
    ready = workers(4, 320_100, worker("a", ran=ORDERS, given=AUDIT))
    assert [s[3:] for s in stalls(rows([*LEAVES, behind, ready]))] == [(2, 4), (2, 4)]


def test_a_refused_assignment_is_a_failed_rebalance() -> None:
    found = rows([workers(1, 0, worker("a", ran=ORDERS, error=1))])
    assert [e["kind"] for e in found["group_events"] if e["event_at"] == START + 5] == ["failed_rebalance"]


def test_version_0_stops_everything_in_every_rebalance() -> None:
    def eager(number: int, at: int, **given: dict[str, list[int]]) -> Any:
        return workers(number, at, *(worker(n, given=g, version=0) for n, g in given.items()), protocol="default")

    found = rows([eager(1, 0, a=BOTH), eager(2, 8_000, a=ORDERS, b=AUDIT)])
    assert column(found, "rebalance_mode") == ["eager", "eager"]
    assert {s[2:] for s in stalls(found)} == {(StallCause.EAGER_BARRIER, 2, 2)}
    assert len(found["stalls"]) == 4


def test_the_change_from_eager_to_incremental_still_stops_everything() -> None:
    old = workers(1, 0, worker("a", given=BOTH, version=0), protocol="default")
    found = rows([old, workers(2, 9_000, worker("a", ran=BOTH))])
    assert column(found, "rebalance_mode") == ["eager", "incremental"]
    assert [s[2:] for s in stalls(found)] == [(StallCause.EAGER_BARRIER, 2, 2)] * 4


def test_work_that_went_on_under_a_new_member_id_never_stopped() -> None:
    found = rows(
        [workers(1, 0, worker("a", given=ORDERS), worker("b", given=AUDIT)),
         workers(2, 9_000, worker("a", ran=ORDERS), worker("c", ran=AUDIT))]
    )  # fmt: skip
    assert stalls(found) == []


def test_a_worker_that_comes_back_with_its_work_may_never_have_stopped() -> None:
    back = workers(3, 25_000, worker("a", ran=ORDERS), worker("c", ran=AUDIT))
    found = rows([*LEAVES, back], [LEFT])
    for stall in found["stalls"]:
        assert (stall["resumed_generation_id"], stall["stopped_ms_min"], stall["evidence"]) == (3, 0, "inferred")
        assert stall["resumed_at_latest"] == START + 25_000


def test_work_whose_worker_never_learnt_of_it_is_missed_until_it_is_handed_out_again() -> None:
    found = rows(
        [
            workers(1, 0, worker("a", given=BOTH)),
            workers(2, 1_000, worker("a", ran=BOTH, revoked=AUDIT), worker("b")),
            workers(3, 1_500, worker("a", ran=ORDERS), worker("b", ran={}, given=AUDIT)),
            workers(4, 1_700, worker("a", ran=ORDERS, given=AUDIT), worker("b", ran={})),
        ]
    )
    assert stalls(found) == [("audit", -1, StallCause.MOVED, 2, 4), ("audit", 0, StallCause.MOVED, 2, 4)]
    assert {s["to_member_id"] for s in found["stalls"]} == {member_id("a")}


def test_a_worker_that_gave_its_work_up_by_itself_stopped_before_it_came_back() -> None:
    found = rows(
        [
            workers(1, 0, worker("a", given=ORDERS), worker("b", given=AUDIT)),
            workers(2, 1_000, worker("a", ran=ORDERS), worker("b", ran=AUDIT)),
            workers(3, 9_000, worker("a", ran=ORDERS), worker("b", ran={}, given=AUDIT)),
        ]
    )
    assert stalls(found) == [("audit", -1, StallCause.MOVED, 3, 3), ("audit", 0, StallCause.MOVED, 3, 3)]
    for stall in found["stalls"]:
        assert (stall["stopped_at_earliest"], stall["stopped_at_latest"]) == (START + 1_005, START + 9_000)
        assert stall["evidence"] == "inferred"


def test_a_blob_that_stays_closed_stops_nothing() -> None:
    closed = worker("a", ran=ORDERS) | {"subscription": {"opaque": True, "size": 9, "sha256": "00"}}
    found = rows([*LEAVES[:1], workers(2, 9_000, closed), workers(3, 9_500, worker("a", ran=ORDERS))])
    assert stalls(found) == []
    assert column(found, "rebalance_mode")[1] == "unknown"


MOVES = (
    workers(1, 0, worker("a", given=BOTH)),
    workers(2, 1_000, worker("a", ran=BOTH, revoked=AUDIT), worker("b")),
    workers(3, 1_500, worker("a", ran=ORDERS), worker("b", ran={}, given=AUDIT)),
)
READ = (
    synced_line(1_010, "a", 2),
    worker_line(1_090, "a", "Finished stopping tasks in preparation for rebalance"),
    synced_line(1_510, "b", 3),
    worker_line(1_520, "b", "Starting connectors and tasks using config offset 10"),
    worker_line(1_800, "b", "Finished starting connectors and tasks"),
)


def test_the_workers_own_lines_tell_when_work_stopped_and_ran_again() -> None:
    stall = rows(MOVES, READ)["stalls"][0]
    assert (stall["stopped_at_earliest"], stall["stopped_at_latest"]) == (START + 1_005, START + 1_090)
    assert (stall["resumed_at_earliest"], stall["resumed_at_latest"]) == (START + 1_505, START + 1_800)
    assert stall["stopped_ms"] == 1_800 - (1_005 + 1_090) // 2


def test_a_worker_that_leaves_stopped_when_it_says_it_began_to() -> None:
    described = [
        synced_line(10, "b", 1),
        worker_line(15_000, "b", "Stopping connectors and tasks that are still assigned to this worker."),
    ]
    stall = rows(LEAVES, [LEFT, *described])["stalls"][0]
    assert (stall["stopped_at_earliest"], stall["stopped_at_latest"]) == (START + 15_000, START + 19_990)
    assert stall["evidence"] == "observed"


def test_the_same_lines_in_any_order_and_twice_give_the_same_rows() -> None:
    whole = rows(MOVES, READ)
    for order in permutations(READ):
        assert rows(MOVES, [*order, *order[:2]]) == whole


def test_lines_of_a_worker_whose_clock_is_off_are_not_believed() -> None:
    late = [line | {"event_at": line["event_at"] + 2_000} for line in READ]
    assert rows(MOVES, late)["stalls"] == rows(MOVES)["stalls"]


def test_workers_of_one_name_through_one_topic_are_not_kept_apart() -> None:
    shared = {"source": "lines-0", "client": "connect-1"}
    described = [
        synced_line(1_510, "a", 3, **shared),
        synced_line(1_511, "b", 3, **shared),
        worker_line(1_520, "a", "Finished starting connectors and tasks", **shared),
    ]
    assert rows(MOVES, described)["stalls"] == rows(MOVES)["stalls"]


def test_workers_lines_alone_do_not_make_a_state_observed() -> None:
    assert rows(MOVES, READ)["groups"][0]["evidence"] == rows(MOVES)["groups"][0]["evidence"] == "bounded"


# --- a recorded group ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["offsets,log", "offsets"])
def recorded(request) -> dict[str, Any]:
    return silver_of(batches("connect", sources=request.param), "connect")


def outages() -> list[tuple[str, int, float, float]]:
    """(connector, task, stopped, ran again) of the tasks themselves, where that took more than a second."""
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    (group,) = truth("connect")["groups"].values()
    for run in group["task_runs"]:
        runs.setdefault((run["connector"], run["task"]), []).append(run)
    out = []
    for (connector, task), of_task in runs.items():
        for before, after in pairwise(sorted(of_task, key=lambda run: run["start_ms"])):
            if after["start_ms"] - before["stop_ms"] >= 1_000:
                out.append((connector, task, before["stop_ms"], after["start_ms"]))
    return out


def test_every_outage_of_a_task_is_found(recorded) -> None:
    errors = []
    for connector, task, stopped, ran in outages():
        near = [
            s
            for s in recorded["stalls"]
            if (s["name"], s["index"]) == (connector, task)
            and s["resumed_at_latest"] is not None
            and s["stopped_at_earliest"] <= ran
            and s["resumed_at_latest"] >= stopped
        ]
        assert len(near) == 1
        errors.append(abs(near[0]["stopped_ms"] - (ran - stopped)))
    assert len(errors) == 11
    assert median(errors) <= 500


def test_nothing_is_shown_to_have_stopped_that_did_not(recorded) -> None:
    generations = {(s["generation_id"], s["resumed_generation_id"]) for s in recorded["stalls"]}
    assert generations == {(8, 9), (10, 11), (12, 14), (15, 16), (17, 18), (19, 19), (20, None)}


def test_causes_of_a_recorded_group_are_kept_apart() -> None:
    found = silver_of(batches("connect"), "connect")
    assert {(s["generation_id"], str(s["cause"])) for s in found["stalls"]} == {
        (8, "moved"), (10, "moved"), (12, "connect_delay"), (15, "member_lost"), (17, "moved"), (19, "moved"),
        (20, "no_member"),
    }  # fmt: skip
    assert [r["generation_id"] for r in found["generations"] if r["trigger"] == "connect_delay_expired"] == [14, 16]
