"""When an alert holds, when it does not, and when this is unknown."""

from __future__ import annotations

import pytest

from pipelines.gold.alerts.alert import CLUSTER, AlertLimits, Facts
from pipelines.gold.alerts.burn import Loss, Stopped, burning
from pipelines.gold.alerts.freshness import Freshness
from pipelines.gold.alerts.rules import RULES, evaluate
from schemas.states import AlertName, AlertSeverity
from testing.alerts.rows import HOUR, MINUTE, NOW, health, pattern, rebalancing, stalled, storm, unowned

LIMITS = AlertLimits(stuck_ms=6 * MINUTE, stale_ms=90_000, availability=0.999)
FRESH = Freshness(known_until_ms=NOW, is_fresh=True)
DIM = Freshness(known_until_ms=NOW - HOUR, is_fresh=False)
BLIND = Freshness(
    known_until_ms=NOW - HOUR, is_fresh=False, is_broker_there=True, blind_since_ms=NOW - HOUR, why="5 wait"
)


def verdict(**described):
    return evaluate(
        Facts(**{"cluster": "kafka", "now_ms": NOW, "freshness": FRESH, "polled_until_ms": NOW} | described), LIMITS
    )


def found(**described) -> list[tuple[str, str, str]]:
    return [(str(a.name), a.subject, str(a.severity)) for a in verdict(**described).alerts]


def loss(seconds: dict[int, float], group: str = "orders", resources: float = 4.0) -> Loss:
    """Resource-seconds lost by window."""
    return Loss(
        group_id=group,
        windows={
            w: Stopped(
                lost_ms=s * 1000, lost_ms_min=s * 900, lost_ms_max=s * 1100, first_ms=NOW - w, resources=resources
            )
            for w, s in seconds.items()
        },
    )


def test_every_alert_has_a_rule():
    assert set(RULES) == set(AlertName)


def test_a_storm_with_an_interval_says_that_it_is_one():
    limits = {"lost_resource_seconds_low": 59.5, "lost_resource_seconds_high": 63.0}
    (alert,) = verdict(storms=[storm() | limits]).alerts
    assert "\N{ALMOST EQUAL TO} 61.0 (90 %: 59.5\N{EN DASH}63.0) resource-seconds were lost" in alert.description


def test_a_storm_of_one_group_pages():
    assert [("KafkaRebalanceStorm", "orders", "page")] == found(storms=[storm()])
    (alert,) = verdict(storms=[storm()]).alerts
    assert "Group orders has a rebalance storm: 12 rebalances, 9 of them unplanned" == alert.summary
    for described in (
        "≈ 61.0 (58.2\N{EN DASH}66.1) resource-seconds",
        "session_expiry (score 0.80)",
        "bounded",
        "No attribute distinguishes the affected",
    ):
        assert described in alert.description


def test_a_fleet_storm_is_one_alert_and_raises_none_of_its_groups():
    fleet = storm(scope="fleet", groups=37, group_ids=["orders", "billing"])
    described = {"storms": [storm("orders"), fleet], "rebalancing": [rebalancing("billing"), rebalancing("audit")]}
    assert [("KafkaRebalanceStorm", CLUSTER, "page"), ("KafkaGroupStuckRebalancing", "audit", "page")] == found(
        **described
    )
    raised = {(AlertName.REBALANCE_STORM, "orders")}
    assert ("KafkaRebalanceStorm", "orders", "page") in found(**described, raised=raised), (
        "what is raised is not resolved"
    )


def test_a_storm_after_which_the_cluster_is_silent_is_over():
    silent = Freshness(known_until_ms=NOW, is_fresh=True, silent_ms=31 * MINUTE)
    assert [] == found(storms=[storm()], freshness=silent)
    fleet = storm(scope="fleet", groups=2, group_ids=["orders", "billing"])
    stuck = ("KafkaGroupStuckRebalancing", "orders", "page")
    assert [stuck] == found(storms=[fleet], rebalancing=[rebalancing()], freshness=silent), "nothing hides its groups"


def test_differences_are_reported_with_their_lift():
    differences = [{"attribute": "coordinator", "value": "3", "share": 0.9, "baseline": 0.1, "lift": 9.0}]
    (alert,) = verdict(storms=[storm(differences=differences)]).alerts
    assert "coordinator 3 (9.0 times as often as the others)" in alert.description


@pytest.mark.parametrize(("minutes", "is_stuck"), [(5, False), (7, True)])
def test_a_rebalance_is_stuck_once_it_is_open_for_longer_than_the_limit(minutes, is_stuck):
    row = rebalancing(since=NOW - minutes * MINUTE)
    assert is_stuck == bool(found(rebalancing=[row]))
    assert not found(rebalancing=[row | {"is_deleted": True}])


def test_how_long_it_is_stuck_is_counted_only_as_far_as_is_known():
    freshness = Freshness(known_until_ms=NOW - 80_000, is_fresh=True)
    assert not found(rebalancing=[rebalancing(since=NOW - 7 * MINUTE)], freshness=freshness)


NEWEST = {"is_newest": True, "had_owner": True}


@pytest.mark.parametrize(("had_owner", "severity"), [(True, "page"), (False, "ticket")])
def test_a_topic_without_an_owner_pages_if_it_had_one_before(had_owner, severity):
    row = unowned() | NEWEST | {"had_owner": had_owner}
    assert [("KafkaTopicWithoutOwner", "orders", severity)] == found(unowned=[row])
    (alert,) = verdict(unowned=[row]).alerts
    assert "Group orders has no owner for 1 subscribed topic: audit" == alert.summary
    assert "Nobody was assigned audit. Check that audit exists. Evidence: observed." in alert.description


@pytest.mark.parametrize(("minutes", "is_raised"), [(5, False), (7, True)])
def test_a_running_rebalance_raises_no_topic_without_an_owner(minutes, is_raised):
    row = unowned(since=NOW - minutes * MINUTE) | NEWEST
    assert is_raised == bool(found(unowned=[row]))
    behind = Freshness(known_until_ms=NOW - 80_000, is_fresh=True)
    assert not found(unowned=[unowned(since=NOW - 7 * MINUTE) | NEWEST], freshness=behind)


def test_a_newer_generation_raises_nothing_and_resolves_nothing_until_it_is_analyzed():
    row = unowned() | NEWEST | {"is_newest": False}
    assert [] == found(unowned=[row])
    assert found(unowned=[row], raised={(AlertName.TOPIC_WITHOUT_OWNER, "orders")})


def test_several_topics_of_a_group_are_one_alert_since_the_first():
    names = ("a", "b", "c", "d")
    rows = [unowned(name, since=NOW - (10 + n) * MINUTE) | NEWEST for n, name in enumerate(names)]
    rows[0] |= {"had_owner": False}
    (alert,) = verdict(unowned=rows).alerts
    assert (NOW - 13 * MINUTE, "page") == (alert.started_ms, alert.severity)
    assert "4 subscribed topics: d, c, b and 1 other" in alert.summary


def test_flapping_names_who_flaps():
    described = {"group_id": "orders", "evidence": "observed"}
    went = ((0, "a", 1), (0, "b", 1), (HOUR, "a", 2), (2 * HOUR, "c", 9))
    gone = [described | {"hour_at": NOW - ago, "instance": client, "times": times} for ago, client, times in went]
    (alert,) = verdict(flapping=[health(NOW - HOUR, 1)], departures=gone).alerts
    assert (AlertName.MEMBER_FLAPPING, AlertSeverity.TICKET) == (alert.name, alert.severity)
    assert "a (3 times), b (1 time)" in alert.description


def test_a_stalled_reassignment_is_a_ticket_only_while_polls_are_fresh():
    assert [("KafkaReassignmentStalled", "topic-0", "ticket")] == found(stalled=[stalled()])
    old = verdict(stalled=[stalled()], polled_until_ms=NOW - 2 * MINUTE)
    assert ([], {AlertName.REASSIGNMENT_STALLED, AlertName.OWNER_NOT_WORKING}) == (list(old.alerts), set(old.unknown))


def test_nothing_is_concluded_from_what_is_not_seen():
    dim = verdict(
        storms=[storm()],
        rebalancing=[rebalancing()],
        losses=[loss({HOUR: 900, 5 * MINUTE: 900})],
        unowned=[unowned() | NEWEST],
        freshness=DIM,
    )
    assert [] == dim.alerts
    assert {AlertName.REBALANCE_STORM, AlertName.GROUP_STUCK_REBALANCING, AlertName.AVAILABILITY_BURN} <= dim.unknown
    assert AlertName.TOPIC_WITHOUT_OWNER in dim.unknown


def test_to_be_blind_is_a_page_and_where_no_broker_answers_a_ticket():
    assert [("KafkaRebalanceTelemetryStale", "__consumer_offsets", "page")] == found(freshness=BLIND)
    absent = Freshness(
        known_until_ms=None, is_fresh=False, is_broker_there=False, blind_since_ms=NOW, why="none answers"
    )
    assert [("KafkaRebalanceTelemetryStale", "__consumer_offsets", "ticket")] == found(freshness=absent)


# Of 4 resources an hour holds 14,400 resource-seconds: 14.4 times 0.1 % of them are 207.36.
@pytest.mark.parametrize(
    ("hour", "minutes", "severity"),
    [(208, 18, "page"), (207, 18, None), (208, 17, None), (208, 0, None)],
)
def test_a_fast_burn_needs_both_of_its_windows(hour, minutes, severity):
    expected = [] if severity is None else [("KafkaAvailabilityBurn", "orders", severity)]
    assert expected == found(losses=[loss({HOUR: hour, 5 * MINUTE: minutes})])


def test_a_slow_burn_is_a_ticket():
    three_days, six_hours = 72 * HOUR, 6 * HOUR
    assert [("KafkaAvailabilityBurn", "orders", "ticket")] == found(losses=[loss({three_days: 1040, six_hours: 90})])


def test_a_burn_that_hovers_around_its_rate_is_one_alert():
    hovering = loss({HOUR: 110, 5 * MINUTE: 10})
    assert burning(hovering, 0.999, is_raised=False) is None
    assert burning(hovering, 0.999, is_raised=True) is not None
    assert burning(loss({HOUR: 110, 5 * MINUTE: 8}), 0.999, is_raised=True) is None


def test_a_group_that_owns_nothing_burns_nothing():
    assert [] == found(losses=[loss({HOUR: 900, 5 * MINUTE: 900}, resources=0.0)])


def down(**values):
    return pattern("offsets_partition_down", "__consumer_offsets-7", ["billing", "orders"], **values)


def test_an_offsets_partition_that_is_down_is_one_alert_instead_of_one_for_each_of_its_groups():
    described = {"rebalancing": [rebalancing(group) for group in ("orders", "billing", "audit")], "patterns": [down()]}
    described["losses"] = [loss({HOUR: 900, 5 * MINUTE: 900})]
    expected = [
        ("KafkaGroupStuckRebalancing", "audit", "page"),
        ("KafkaOffsetsPartitionDown", "__consumer_offsets-7", "page"),
    ]
    assert expected == found(**described)
    (alert,) = [a for a in verdict(**described).alerts if a.name == AlertName.OFFSETS_PARTITION_DOWN]
    assert "__consumer_offsets-7 is down: 2 groups can neither commit nor rebalance" == alert.summary
    for text in ("It was down. No other alert about these groups", "Next: Bring it back.", "observed, from log."):
        assert text in alert.description
    raised = {(AlertName.GROUP_STUCK_REBALANCING, "orders")}
    assert ("KafkaGroupStuckRebalancing", "orders", "page") in found(**described, raised=raised)


@pytest.mark.parametrize(
    "values",
    [
        {"since": NOW - 59_000},
        {"last_at": NOW - 6 * MINUTE},
        {"evidence": "inferred"},
    ],
)
def test_a_partition_that_is_down_for_a_moment_or_by_conclusion_only_or_was_is_no_alert(values):
    stuck = ("KafkaGroupStuckRebalancing", "orders", "page")
    assert [stuck] == found(patterns=[down(**values)], rebalancing=[rebalancing()])


def test_who_is_waited_for_and_until_when_is_reported():
    wait = pattern("stuck_rebalance", "orders", ["orders"], explanation="It waits for <b>orders-1</b>.", action="Look.")
    (alert,) = verdict(rebalancing=[rebalancing()], patterns=[wait]).alerts
    assert "It waits for %3Cb%3Eorders-1%3C/b%3E. Next: Look. Verdict: not known. Suspected cause" in alert.description
    (other,) = verdict(rebalancing=[rebalancing()], patterns=[wait | {"started_at": NOW - HOUR}]).alerts
    assert "It waits for" not in other.description


def test_a_stuck_group_that_waits_for_its_members_is_the_applications():
    wait = pattern("stuck_rebalance", "orders", ["orders"], instances=["orders-1"], evidence="inferred")
    text = "Verdict: client application (inferred), because the group waits for its members."
    (named,) = verdict(rebalancing=[rebalancing()], patterns=[wait]).alerts
    (polled,) = verdict(patterns=[wait]).alerts
    assert text in named.description
    assert text in polled.description


def test_a_rebalance_that_only_polls_show_pages_only_while_polls_are_fresh():
    described = {"patterns": [pattern("stuck_rebalance", "orders", ["orders"])]}
    page = [("KafkaGroupStuckRebalancing", "orders", "page")]
    assert page == found(**described)
    for old in (NOW - 2 * MINUTE, None):
        assert [] == found(**described, polled_until_ms=old)
        raised = {(AlertName.GROUP_STUCK_REBALANCING, "orders")}
        assert page == found(**described, polled_until_ms=old, raised=raised)


def test_a_stuck_group_without_a_name_has_at_most_the_verdict_of_its_earlier_rebalances():
    earlier = {"cause": "coordinator", "evidence": "observed", "explanation": "It moved.", "verdict": "broker"}
    (alert,) = verdict(rebalancing=[rebalancing()], causes={"orders": earlier}).alerts
    assert "Verdict: broker (inferred), as in its earlier rebalances. Suspected cause: coordinator" in alert.description
    (old,) = verdict(rebalancing=[rebalancing()], causes={"orders": earlier | {"verdict": None}}).alerts
    assert "Verdict: not known." in old.description


def test_a_storm_names_its_verdict_and_how_much_of_the_loss_it_is():
    sums = [
        {"verdict": "broker", "rebalances": 2, "lost_resource_seconds": 81.0},
        {"verdict": "deploy_or_scaling", "rebalances": 1, "lost_resource_seconds": 2.0},
    ]
    (alert,) = verdict(storms=[storm(verdict="broker", verdicts=sums)]).alerts
    assert "Verdict: broker (inferred), 98 % of the loss. Suspected cause: session_expiry" in alert.description
    (unknown,) = verdict(storms=[storm()]).alerts
    assert "Verdict: not known." in unknown.description


def test_polls_alone_raise_a_stuck_rebalance_once_it_lasts_for_longer_than_the_limit():
    wait = pattern("stuck_rebalance", "orders", ["orders"], since=NOW - 7 * MINUTE, sources=["poll", "topic"])
    assert [("KafkaGroupStuckRebalancing", "orders", "page")] == found(patterns=[wait])
    assert [] == found(patterns=[wait | {"started_at": NOW - 5 * MINUTE}])
