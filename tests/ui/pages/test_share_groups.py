"""`__consumer_offsets` does not show a share group's work: no page calls the group working or says it lost nothing."""

from __future__ import annotations

from dashboards.app import page
from dashboards.lake.lake import LocalLake
from dashboards.pages import fleet
from dashboards.queries.store import Store
from dashboards.urlstate import parse
from schemas.silver import GENERATIONS, GROUPS, SILVER
from testing.alerts.rows import CLUSTER, HOUR, MINUTE, NOW, row, write
from tests.ui.reading import words


def share_group(warehouse) -> Store:
    since = NOW - 10 * MINUTE
    for table in SILVER:
        write(warehouse, table, [])
    group = row(
        GROUPS, group_id="share", incarnation=0, group_type="share", group_protocol="share", state="Stable",
        state_since_at=since, generation_id=2, member_count=2, first_seen_at=NOW - HOUR, last_record_at=NOW,
        is_deleted=False, evidence="observed",
    )  # fmt: skip
    write(warehouse, GROUPS, [group])
    made = row(
        GENERATIONS, group_id="share", incarnation=0, generation_id=2, joined_at=since, synced_at=since, completed_at=since,
        outcome="completed", group_type="share", group_protocol="share", rebalance_mode="none", trigger="member_joined",
        trigger_evidence="observed", prepared_at=since, prepared_at_earliest=since, prepared_at_latest=since,
        rebalance_ms=0, rebalance_ms_min=0, rebalance_ms_max=0, member_count=2, static_member_count=0,
        joined_member_ids=[], left_member_ids=[], is_empty=False, evidence="observed", log_epoch=0, source_partition=1,
        source_offset=1, protocol_type="share",
    )  # fmt: skip
    write(warehouse, GENERATIONS, [made])
    return Store(LocalLake(warehouse))


def test_the_fleet_says_that_work_and_loss_are_not_observed(tmp_path) -> None:
    found = fleet.block(share_group(tmp_path), parse("/", "from=all"), {}, NOW)
    (shown,) = found["rowData"]
    assert ("unseen", "work not observed") == (shown["style"], shown["state"])
    assert (None, "not observed") == (shown["lost"], shown["lost_text"])


def test_the_page_of_the_group_says_the_same(tmp_path) -> None:
    made, _, _ = page(share_group(tmp_path), "/group", f"?cluster={CLUSTER}&group=share&from=all", None, NOW)
    text = words(made)
    assert "Now work not observed" in text
    assert "what they cost is not observed" in text
    assert "seconds lost" not in text.partition("What happened")[2].partition("Glyphs")[0]


def test_the_page_of_a_rebalance_says_nothing_of_a_loss_in_figures(tmp_path) -> None:
    made, _, _ = page(share_group(tmp_path), "/rebalance", f"?cluster={CLUSTER}&group=share&generation=2", None, NOW)
    text = words(made)
    assert "what it cost is not observed" in text
    assert "Resource-seconds lost | not observed" in text
