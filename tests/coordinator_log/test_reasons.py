"""Every reason of a rebalance, the coordinator's and the client's."""

from __future__ import annotations

import pytest

from schemas.states import Trigger
from tests.coordinator_log.lines import MEMBER, NEW, OTHER, line, parse

OLD_LOGGER = "kafka.coordinator.group.GroupCoordinator"


def old(reason: str) -> str:
    return line(
        "[GroupCoordinator 1]: Preparing to rebalance group orders in state PreparingRebalance with old generation 7 "
        f"(__consumer_offsets-12) (reason: {reason})",
        OLD_LOGGER,
    )


def new(reason: str) -> str:
    return line(
        f"{NEW}Preparing to rebalance group orders in state PreparingRebalance with old generation 7 (reason: {reason})."
    )


T = Trigger
SERVER = [
    # reason, trigger, member, instance, members
    (f"Adding new member {MEMBER} with group instance id None", T.MEMBER_JOINED, MEMBER, None, None),
    (f"Adding new member {MEMBER} with group instance id Some(rack-a)", T.MEMBER_JOINED, MEMBER, "rack-a", None),
    (f"Adding new member {MEMBER} with group instance id null", T.MEMBER_JOINED, MEMBER, None, None),
    (f"Adding new member {MEMBER} with group instance id rack-a", T.MEMBER_JOINED, MEMBER, "rack-a", None),
    (f"Member {MEMBER} joining group during PreparingRebalance", T.MEMBER_JOINED, MEMBER, None, None),
    (f"Member {MEMBER} is joining group during PreparingRebalance", T.MEMBER_JOINED, MEMBER, None, None),
    (f"Updating metadata for member {MEMBER} during CompletingRebalance", T.UNKNOWN, MEMBER, None, None),
    (f"Updating metadata for member {MEMBER} during Stable", T.UNKNOWN, MEMBER, None, None),
    (f"leader {MEMBER} re-joining group during Stable", T.LEADER_REJOINED, MEMBER, None, None),
    (f"Leader {MEMBER} re-joining group during Stable", T.LEADER_REJOINED, MEMBER, None, None),
    (f"removing member {MEMBER} on LeaveGroup", T.MEMBER_LEFT, MEMBER, None, None),
    (f"Removing member {MEMBER} on LeaveGroup", T.MEMBER_LEFT, MEMBER, None, None),
    (f"explicit `LeaveGroup` request for ({MEMBER}) members.", T.MEMBER_LEFT, MEMBER, None, [MEMBER]),
    (f"explicit `LeaveGroup` request for ({MEMBER}, {OTHER}) members.", T.MEMBER_LEFT, None, None, [MEMBER, OTHER]),
    (f"removing member {MEMBER} on heartbeat expiration", T.SESSION_EXPIRED, MEMBER, None, None),
    (f"removing member {MEMBER} on heartbeat expiration.", T.SESSION_EXPIRED, MEMBER, None, None),
    (f"Removing Set({MEMBER}, {OTHER}) on pending sync request expiration", T.SYNC_TIMEOUT, None, None, [MEMBER, OTHER]),
    (f"Removing [{MEMBER}] on pending sync request expiration", T.SYNC_TIMEOUT, MEMBER, None, [MEMBER]),
    (f"error when storing group assignment during SyncGroup (member: {MEMBER})", T.ASSIGNMENT_FAILED, MEMBER, None, None),
    (f"Error NOT_COORDINATOR when storing group assignment during SyncGroup (member: {MEMBER})", T.ASSIGNMENT_FAILED, MEMBER, None, None),
    (f"Error NOT_COORDINATOR when storing group assignmentduring SyncGroup (member: {MEMBER}).", T.ASSIGNMENT_FAILED, MEMBER, None, None),
    (f"Updating metadata for static member {MEMBER} with instance id Some(rack-a)", T.STATIC_MEMBER_CHANGED, MEMBER, "rack-a", None),
    (f"Updating metadata for static member {MEMBER} with instance id rack-a", T.STATIC_MEMBER_CHANGED, MEMBER, "rack-a", None),
    (f"Group's selectedProtocol will change because static member {MEMBER} with instance id rack-a joined with change of protocol", T.STATIC_MEMBER_CHANGED, MEMBER, "rack-a", None),
    ("Freshly-loaded group is over capacity (GroupConfig(6000,300000,5,3000).groupMaxSize). Rebalacing in order to give a chance for consumers to commit offsets", T.UNKNOWN, None, None, None),
    ("Freshly-loaded group is over capacity (5). Rebalancing in order to give a chance for consumers to commit offsets", T.UNKNOWN, None, None, None),
    ("Freshly-loaded group orders (size 6) is over capacity 5. Rebalancing in order to give a chance for consumers to commit offsets", T.UNKNOWN, None, None, None),
    ("Downgrade group orders from consumer to classic.", T.DOWNGRADE, None, None, None),
    ("Downgrade group orders from consumer to classic for member leaving.", T.DOWNGRADE, None, None, None),
    ("Downgrade group orders from consumer to classic with stale assignment.", T.DOWNGRADE, None, None, None),
    ("Downgrade group orders from consumer to classic for static member replacement with different subscription.", T.DOWNGRADE, None, None, None),
    ("Something a later Kafka says", T.UNKNOWN, None, None, None),
]  # fmt: skip

CLIENT = [
    ("need to revoke partitions and re-join", T.COOPERATIVE_FOLLOWUP),
    ("cached metadata has changed", T.METADATA_CHANGED),
    ("subscription has changed", T.SUBSCRIPTION_CHANGED),
    ("received assignment does not match the current subscription", T.SUBSCRIPTION_CHANGED),
    ("rebalance enforced by user", T.ENFORCED),
    ("after revoking what we lost from a rebalance", T.COOPERATIVE_FOLLOWUP),
    ("rejoining because we are the leader and noticed some topics have new partitions", T.METADATA_CHANGED),
    (
        "leader detected that partitions on topics another member is consuming have changed, rejoining to trigger rebalance",
        T.METADATA_CHANGED,
    ),
    ("partitions were added to a subscribed topic", T.METADATA_CHANGED),
    ("a ConsumeClaim handler has exited", T.ENFORCED),
    ("triggered followup rebalance scheduled for 600000", T.PROBING),
    ("Active tasks corrupted", T.ENFORCED),
    ("Shutdown requested", T.ENFORCED),
    ("group is already rebalancing", None),
    ("encountered UNKNOWN_MEMBER_ID from HEARTBEAT response", None),
    ("rebalance failed due to RebalanceInProgressException", None),
    ("offset commit failed since group is already rebalancing", None),
    ("an operator's own words; client reason: cached metadata has changed", None),
]


@pytest.mark.parametrize("make", [old, new], ids=["old", "new"])
@pytest.mark.parametrize(("reason", "trigger", "member", "instance", "members"), SERVER)
def test_a_servers_reason_names_trigger_and_members(make, reason, trigger, member, instance, members):
    found = parse(make(reason))
    assert (trigger, member, instance) == (found.trigger, found.member_id, found.group_instance_id)
    assert (members, reason, None) == (found.member_ids, found.reason, found.client_reason)


@pytest.mark.parametrize(
    "base", ["Leader {} re-joining group during Stable", "Updating metadata for member {} during Stable"]
)
@pytest.mark.parametrize(("client", "trigger"), CLIENT)
@pytest.mark.parametrize("make", [old, new], ids=["old", "new"])
def test_a_clients_reason_says_why_a_member_came_again(make, base, client, trigger):
    server = base.format(MEMBER)
    alone = Trigger.LEADER_REJOINED if base.startswith("Leader") else Trigger.UNKNOWN
    found = parse(make(f"{server}; client reason: {client}"))
    assert (trigger or alone, server, client, MEMBER) == (
        found.trigger,
        found.reason,
        found.client_reason,
        found.member_id,
    )


def test_a_servers_reason_not_known_yet_leaves_the_client_to_say_why():
    found = parse(new("What a later Kafka says; client reason: cached metadata has changed"))
    assert (Trigger.METADATA_CHANGED, "What a later Kafka says") == (found.trigger, found.reason)


@pytest.mark.parametrize("client", ["not provided", ""])
def test_a_client_that_gives_no_reason_has_none(client):
    found = parse(old(f"Leader {MEMBER} re-joining group during Stable; client reason: {client}"))
    assert (Trigger.LEADER_REJOINED, None) == (found.trigger, found.client_reason)


def test_a_new_member_joins_whatever_it_says():
    found = parse(
        new(f"Adding new member {MEMBER} with group instance id null; client reason: subscription has changed")
    )
    assert (Trigger.MEMBER_JOINED, "subscription has changed") == (found.trigger, found.client_reason)


@pytest.mark.parametrize(
    ("client", "trigger"),
    [
        ("the consumer is being closed", Trigger.MEMBER_LEFT),
        ("consumer poll timeout has expired.", Trigger.POLL_TIMEOUT),
        ("worker poll timeout has expired.", Trigger.POLL_TIMEOUT),
        ("the consumer unsubscribed from all topics", Trigger.MEMBER_LEFT),
        ("member was removed by an admin", Trigger.MEMBER_LEFT),
        ("not provided", Trigger.MEMBER_LEFT),
    ],
)
def test_a_leaving_client_says_why(client, trigger):
    preparing = parse(old(f"Removing member {MEMBER} on LeaveGroup; client reason: {client}"))
    left = parse(
        line(
            f"{NEW}[Group orders] Member {MEMBER} has left group through explicit `LeaveGroup` request; client reason: {client}"
        )
    )
    declared = None if client == "not provided" else client
    assert [(trigger, MEMBER, declared)] * 2 == [(e.trigger, e.member_id, e.client_reason) for e in (preparing, left)]


@pytest.mark.parametrize(
    ("because", "trigger", "epoch", "waited_ms"),
    [
        ("the member session expired", Trigger.SESSION_EXPIRED, None, None),
        ("its session expired", Trigger.SESSION_EXPIRED, None, None),
        ("the classic member failed to join within the rebalance timeout", Trigger.REJOIN_TIMEOUT, None, None),
        ("the member failed to sync within timeout", Trigger.SYNC_TIMEOUT, None, None),
        ("it failed to transition from epoch 8 within 300000ms", Trigger.REJOIN_TIMEOUT, 8, 300000),
        ("it failed to revoke partitions within 300000ms", Trigger.REJOIN_TIMEOUT, None, 300000),
        ("of something new", None, None, None),
    ],
)
def test_a_fencing_line_says_what_the_member_missed(because, trigger, epoch, waited_ms):
    found = parse(line(f"{NEW}[GroupId orders] Member {MEMBER} fenced from the group because {because}."))
    assert (because, trigger, epoch, waited_ms) == (found.reason, found.trigger, found.generation_id, found.duration_ms)


@pytest.mark.parametrize("separator", ["; client reason: ", " with group instance id ", " during Stable"])
def test_a_client_id_that_holds_fixed_words_stays_in_the_member_id(separator):
    member = f"a{separator}b-6f1c0e1e-2f0a-4b7e-9d57-0c8b0d1f4a11"
    for base in (
        f"Leader {member} re-joining group during Stable",
        f"Adding new member {member} with group instance id null",
    ):
        found = parse(new(f"{base}; client reason: hm"))
        assert (member, "hm") == (found.member_id, found.client_reason)
