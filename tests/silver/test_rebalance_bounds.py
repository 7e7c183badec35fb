"""How long a rebalance may have lasted if no log line shows its start."""

from __future__ import annotations

import pytest

from tests.silver.handmade import GROUP, START, broker_line, consumer, generation, rows


@pytest.mark.parametrize(("newcomer_ms", "at"), [(300_000, 700_000), (30_000, 940_000)])
def test_a_join_phase_lasts_at_most_the_longest_rebalance_timeout_of_old_and_new_members(newcomer_ms, at) -> None:
    newcomer = consumer("b", [1]) | {"rebalanceTimeout": newcomer_ms}
    found = rows([generation(1, 0, [consumer("a", [0, 1])]), generation(2, 1_000_000, [consumer("a", [0]), newcomer])])
    last = found["generations"][-1]
    assert (START + at, START + 1_000_000) == (last["prepared_at_earliest"], last["prepared_at_latest"])


def test_a_group_that_was_empty_may_have_waited_since_its_last_record() -> None:
    found = rows(
        [
            generation(n, n * 1_000_000, members)
            for n, members in enumerate([[consumer("a", [0])], [], [consumer("b", [0])]], 1)
        ]
    )
    assert START + 2_000_000 == found["generations"][-1]["prepared_at_earliest"]


@pytest.mark.parametrize("stated", [None, -1, 2**63 - 1])
def test_a_record_without_the_end_of_the_join_phase_bounds_the_start_by_the_record_before_it(stated) -> None:
    records = [generation(n, n * 1_000_000, [consumer("a", [0])]) for n in (1, 2)]
    if stated is None:
        del records[1]["value"]["currentStateTimestamp"]
    else:
        records[1]["value"]["currentStateTimestamp"] = stated
    first, last = rows(records)["generations"]
    assert (5, None) == (first["sync_ms"], last["sync_ms"])
    assert (first["synced_at"], START + 2_000_005) == (last["prepared_at_earliest"], last["joined_at"])
    assert 1_000_000 == last["rebalance_ms_max"]


def test_a_join_phase_whose_end_is_not_recorded_has_no_length() -> None:
    record = generation(2, 1_000_000, [consumer("a", [0])])
    record["value"]["currentStateTimestamp"] = -1
    text = f"Preparing to rebalance group {GROUP} in state PreparingRebalance with old generation 1 (reason: x)."
    last = rows([generation(1, 0, [consumer("a", [0])]), record], [broker_line(999_000, text)])["generations"][-1]
    assert (START + 999_000, None, 1_005) == (last["prepared_at"], last["join_ms"], last["rebalance_ms"])


def test_an_empty_group_is_recorded_when_its_join_phase_ends() -> None:
    record = generation(2, 1_000_000, [])
    del record["value"]["currentStateTimestamp"]
    last = rows([generation(1, 0, [consumer("a", [0])]), record])["generations"][-1]
    assert START + 940_000 == last["prepared_at_earliest"]
