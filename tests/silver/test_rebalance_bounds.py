"""How long a rebalance may have lasted if no log line shows its start."""

from __future__ import annotations

import pytest

from tests.silver.handmade import START, consumer, generation, rows


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
