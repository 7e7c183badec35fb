"""Ids are untrusted text: they may contain anything, including text that looks like a log line."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.coordinator_events import ParsedEvent
from schemas.coordinator_log import NEW_WORDINGS, OLD_WORDINGS, WORKER_WORDINGS, EventKind
from schemas.coordinator_reasons import SERVER_REASONS
from testing.processor_time import within
from tests.coordinator_log.lines import MEMBER, NEW, WORDINGS, line, parse, printed

ALL = (*OLD_WORDINGS, *NEW_WORDINGS, *WORKER_WORDINGS)
ABOUT_GROUPS = [w for w in ALL if ("{group_id}" in w.text and w.kind != EventKind.DELETED) or w in WORKER_WORDINGS]
KINDS = {w.kind for w in ALL}

ANY_TEXT = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=40)
FRAGMENTS = st.sampled_from(
    [
        *(w["message"] for w in WORDINGS),
        *(line(w["message"], w["logger"]) for w in WORDINGS),
        *(part for w in WORDINGS for part in w["message"].split("orders") if part),
        *(text for text, _ in SERVER_REASONS),
        "x generation 5 with 3 members.",
        " in state PreparingRebalance with old generation 5 (reason: ",
        "; client reason: ",
        " (org.apache.kafka.coordinator.group.GroupMetadataManager)",
    ]
)
HOSTILE = st.one_of(ANY_TEXT, FRAGMENTS, st.lists(st.one_of(ANY_TEXT, FRAGMENTS), min_size=2, max_size=4).map("".join))


@settings(max_examples=1500)
@given(wording=st.sampled_from(ABOUT_GROUPS), group=HOSTILE)
def test_any_group_id_comes_back_from_any_line_about_it(wording, group):
    found = parse(printed(wording, group_id=group))
    assert (wording.kind, group) == (found.event_kind, found.group_id)


@settings(max_examples=400)
@given(group=HOSTILE, client=HOSTILE)
def test_a_client_reason_never_makes_a_line_about_another_group(group, client):
    """If both texts imitate the line, the real id stays at the beginning of the id that is read."""
    text = line(
        f"{NEW}Preparing to rebalance group {group} in state PreparingRebalance with old generation 7 "
        f"(reason: Leader {MEMBER} re-joining group during Stable; client reason: {client})."
    )
    found = parse(text)
    assert EventKind.PREPARING == found.event_kind
    assert found.group_id.startswith(group)
    if " in state " not in client:
        assert (group, 7, MEMBER) == (found.group_id, found.generation_id, found.member_id)
        assert (None if client == "not provided" else client) == found.client_reason


@settings(max_examples=400)
@given(group=ANY_TEXT, client_id=HOSTILE)
def test_any_client_id_comes_back_with_its_member(group, client_id):
    member = f"{client_id}-6f1c0e1e-2f0a-4b7e-9d57-0c8b0d1f4a11"
    found = parse(line(f"{NEW}Member {member} in group {group} has failed, removing it from the group."))
    assert EventKind.SESSION_EXPIRED == found.event_kind
    assert f"{member} in group {group}" == f"{found.member_id} in group {found.group_id}"
    if f"{MEMBER[-37:]} in group " not in client_id:
        assert (member, group) == (found.member_id, found.group_id)


IMITATION = line(f"{NEW}Stabilized group victim generation 5 with 3 members.")
NEAR_MISSES = [
    line(f"{NEW}Stabilized group victim generation 5 with 3 members.", "com.example.Application"),
    line(f"{NEW}Stabilized group victim generation 5 with 3 members.", "kafka.coordinator.group.GroupCoordinator"),
    line(f"{NEW}Stabilized group victim generation 5 with 3 members.", "x.org.apache.kafka.coordinator.group.GroupMetadataManager"),
    line("[ShareCoordinator id=1] Scheduling loading of metadata from __consumer_offsets-1 with epoch 0", "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"),
    line("[GroupCoordinator id=1] Scheduling loading of metadata from __share_group_state-1 with epoch 0", "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"),
    line("[GroupCoordinator id=1] Stabilized group victim generation 5 with 3 members.", "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"),
    line("[GroupCoordinator 1]: Stabilized group victim generation 5 (__consumer_offsets-3)", "kafka.coordinator.group.GroupMetadataManager"),
    line("Stabilized group victim generation 5 with 3 members."),
    line(f"{NEW}Stabilized group victim generation 5 with 3 members"),
    line(f"{NEW}Stabilized group victim generation five with 3 members."),
    line(f"{NEW}Stabilized group victim generation \u0665 with 3 members."),
    line(f"{NEW}Stabilized group victim generation 99999999999 with 3 members."),
    line(f"{NEW}stabilized group victim generation 5 with 3 members."),
    line(f"{NEW}Said: Stabilized group victim generation 5 with 3 members."),
    line(f"{NEW}Stabilized group victim generation 5 with 3 members. And more"),
    line(f"{NEW}Group victim is dead, skipping rebalance stage."),
    IMITATION + " ",
    IMITATION[1:],
    " " + IMITATION,
    "\tat " + IMITATION,
    "Caused by: java.lang.IllegalStateException: " + IMITATION,
    IMITATION.replace("INFO", ""),
    f"{NEW}Stabilized group victim generation 5 with 3 members.",
    "",
    "oordinator",
]  # fmt: skip


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_a_line_that_only_looks_similar_is_none(text):
    assert parse(text) is None


def test_twenty_thousand_mutated_lines_neither_crash_nor_take_long():
    rng = random.Random(20)
    lines = [line(w["message"], w["logger"]) for w in WORDINGS]
    alphabet = "".join(sorted(set("".join(lines)))) + "\x00\r\u2028\u0661é😀"
    for _ in range(20_000):
        chars = list(rng.choice(lines))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(chars))
            chars[at : at + rng.choice((0, 1, 1, 9))] = rng.choices(alphabet, k=rng.choice((0, 1, 1, 4)))
        found = within(0.1, partial(parse, "".join(chars)))
        assert found is None or not isinstance(found, ParsedEvent) or found.event_kind in KINDS


@pytest.mark.parametrize("wording", ALL, ids=lambda w: f"{w.kind}-{w.since}")
def test_a_line_of_100_kb_made_of_its_own_words_is_read_at_once(wording):
    whole = printed(wording)
    words = whole.partition(" INFO ")[2].rpartition(" (")[0]
    long = words * (100_000 // len(words))
    fields = ("group_id", "_", "reason", "member_id", "group_instance_id")
    logger = whole.rpartition("(")[2][:-1]
    texts = (printed(wording, **dict.fromkeys(fields, long)), line(long, logger), line(f"{long}!", logger))
    # A quadratic match takes twenty seconds or more.
    within(2, lambda: [parse(text) for text in texts])


def test_a_workers_line_of_100_kb_that_ends_otherwise_is_refused_at_once():
    text = f"[2026-11-21 10:00:00,123] INFO [Worker clientId=c, groupId=g] {'in group ' * 11_000}oordinator)"
    assert None is within(2, lambda: parse(text))


def test_a_duration_that_no_column_holds_makes_a_line_none_of_ours():
    loader = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"
    text = (
        "[GroupCoordinator id=1] Finished loading of metadata from __consumer_offsets-5 with epoch 0 in {}ms where 9ms "
        "was spent in the scheduler. Loaded 0 records which total to 0 bytes."
    )
    assert 2**63 - 1 == parse(line(text.format(2**63 - 1), loader)).duration_ms
    assert None is parse(line(text.format(2**63), loader))
