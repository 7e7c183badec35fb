"""Questions of people on call: from the alert or the Fleet page, the answer is on a page within three clicks.

The pages show recorded clusters: churn with its accidents, rolling restarts, and hosts that stand still at once.
"""

from __future__ import annotations

from typing import Any

import pytest

from schemas.states import AlertName
from tests.ui.browser.conftest import Recorded, at_of


def expired(recorded: Recorded, cluster: str = "churn") -> dict[str, Any]:
    """Return a rebalance that an expired session caused."""
    return next(
        g for g in recorded.rows["generations"]
        if (g["cluster"], g["trigger"]) == (cluster, "session_expired") and not g["is_empty"]
    )  # fmt: skip


def test_why_did_a_group_stop(asking, recorded) -> None:
    made = expired(recorded)
    link = recorded.alert(AlertName.AVAILABILITY_BURN, made["cluster"], made["group_id"], at_of(made["joined_at"]))
    one = asking(link)
    one.click(
        f".grid a:text-is('{made['generation_id']}')", f"h1:text-is('Rebalance to generation {made['generation_id']}')"
    )
    one.reads("session", "waited", "partitions stopped", "Proof")


def test_who_left_and_who_flaps(asking, recorded) -> None:
    made = expired(recorded)
    one = asking(recorded.alert(AlertName.MEMBER_FLAPPING, "churn", made["group_id"], at_of(made["joined_at"])))
    one.click("summary:text-is('Show as table')", "#page table")
    one.reads("Why it rebalances", "expelled", "inferred")


def test_which_deploy_came_before_the_storm(asking, recorded) -> None:
    storm = next(row for row in recorded.rows["storms"] if row["cluster"] == "edge")
    link = recorded.alert(AlertName.REBALANCE_STORM, "edge", "", at_of(storm["started_at"]), storm["storm_id"])
    asking(link).reads("4 groups", "hypervisor 9.1", "after the deploy", "rack7-billing")


def test_is_it_the_broker_or_the_applications(asking, recorded) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Storms')", "h1:text-is('Storms')")
    one.click("table a:text-is('4 groups together')", "h1:text-is('Storm: 4 groups together')")
    one.reads("Suspected cause", "session", "What is different")


def test_was_anything_lost_or_only_late(asking, recorded) -> None:
    made = expired(recorded)
    asking(recorded.alert(AlertName.AVAILABILITY_BURN, "churn", made["group_id"], at_of(made["joined_at"]))).reads(
        "Work resumed: ", "known)"
    )


@pytest.mark.parametrize("change", ["static membership", "cooperative assignor"])
def test_what_would_static_membership_or_the_cooperative_assignor_save(asking, recorded, change) -> None:
    advised = {
        action: {row["group_id"] for row in recorded.rows["advice"] if (row["cluster"], row["action"]) == ("restarts", action)}
        for action in ("static_membership", "cooperative_assignor")
    }  # fmt: skip
    (group,) = advised["static_membership"] & advised["cooperative_assignor"]
    one = asking(f"/group?cluster=restarts&group={group}&from=all")
    one.click("a:text-is('Advice for this group')", "h1:text-is('Advice')")
    one.click(f"summary:text-is('How: {change}')", ".paste pre:visible")
    paste = "group.instance.id" if "static" in change else "cooperative-sticky"
    one.reads(group, "Interval", "Recommended", change, paste)


def test_did_the_change_help(asking, recorded) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Advice')", "h1:text-is('Advice')")
    one.reads("rates-reader", "no: absences cost more", "static membership: no → yes", clicks=1)


def test_is_it_over(asking, recorded) -> None:
    storm = next(row for row in recorded.rows["storms"] if row["cluster"] == "edge")
    one = asking(recorded.alert(AlertName.REBALANCE_STORM, "edge", "", at_of(storm["started_at"]), storm["storm_id"]))
    one.click("a:text-is('rack7-billing')", "h1:text-is('rack7-billing')")
    one.reads("last seen working (Stable)", "since 2026-11-21", "stopped by the last rebalance committed again by")


def test_can_i_trust_this_page(asking, recorded) -> None:
    one = asking("/?from=all")
    one.click("nav a:text-is('Health')", "h1:text-is('Health of Regroup')")
    one.reads("__consumer_offsets", "uarantine", "edge")
