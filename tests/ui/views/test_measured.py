"""What members measured themselves, in words: only known values are shown, and only remarkable ones as a sentence."""

from __future__ import annotations

import pytest

from dashboards.views.clients.measured import HEAD, measured_cells, measured_sentences, measured_text, software_sentence
from schemas.bronze import CLIENT_METRICS
from schemas.written import EN_DASH

AT = 1_795_000_000_000
MEMBERS = [{"member_id": "billing-1-3f", "rebalance_timeout_ms": 300_000}]


def row(**changed) -> dict:
    known = {"member_id": "billing-1-3f", "group_instance_id": "b1", "client_id": "billing-1", "measured_at": AT}
    return dict.fromkeys(CLIENT_METRICS.names) | known | changed


def cells(**changed) -> dict[str, str]:
    return dict(zip(HEAD, measured_cells(row(**changed)), strict=True))


def test_what_a_client_does_not_measure_is_a_dash() -> None:
    found = cells()
    assert "b1" == found.pop("Member")
    assert "2026-11-18 11:06:40.000" == found.pop("Measured (UTC)")
    assert {EN_DASH} == set(found.values())


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"rebalance_ms": 2380.0}, "2.4 s"),
        (
            {"rebalance_ms": 2380.0, "rebalances": 1, "counted_from_at": AT - 60_000},
            "2.4 s in 1 rebalance since 11:05:40",
        ),
        ({"rebalance_ms": 0.0, "rebalances": 0, "counted_from_at": AT - 60_000}, "none since 11:05:40"),
        ({"rebalance_ms": 0.0}, "none"),
        # A rebalance that takes less than a millisecond counts too.
        ({"rebalance_ms": 0.0, "rebalances": 2}, "0 ms in 2 rebalances"),
    ],
)
def test_the_time_in_rebalances(changed, text) -> None:
    assert text == cells(**changed)["In rebalances"]


def test_the_last_poll_has_bounds() -> None:
    assert (
        f"11:06:37{EN_DASH}11:06:38"
        == cells(last_poll_at_earliest=AT - 3000, last_poll_at_latest=AT - 2000)["Last poll"]
    )


def test_a_poll_that_came_too_late_is_a_sentence() -> None:
    late = row(poll_gap_ms_max=312_000.0)
    (sentence,) = measured_sentences([late, late], MEMBERS)
    assert sentence == (
        "b1 measured 5 min 12 s between two calls of poll (at 11:06:40, by its clock); its max.poll.interval.ms is 5 min."
    )
    assert [] == measured_sentences([row(poll_gap_ms_max=300_000.0)], MEMBERS)
    assert [] == measured_sentences([late], [])
    assert sentence in measured_text([late], MEMBERS)


def test_a_long_callback_is_a_sentence() -> None:
    slow = row(revoked_callback_ms_max=3200.0, assigned_callback_ms_max=10.0)
    assert ["b1 measured 3.2 s in its onPartitionsRevoked (at 11:06:40, by its clock)."] == measured_sentences(
        [slow], []
    )
    assert "3.2 s" == cells(revoked_callback_ms_max=3200.0)["Longest callback"]
    assert [] == measured_sentences([row(lost_callback_ms_max=999.0)], [])


def test_software_is_what_the_clients_said() -> None:
    java = {"software_name": "apache-kafka-java", "software_version": "4.1.0", "clients": 2}
    other = {"software_name": "librdkafka\n", "software_version": None, "clients": 1}
    assert software_sentence([java, other]) == (
        " Software, as the clients told the brokers: apache-kafka-java 4.1.0 (2 clients); librdkafka␊ (1 client)."
    )
    assert "" == software_sentence([])
