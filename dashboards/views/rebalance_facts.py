"""What is known of one rebalance as named values and rows of text, for its page and for documents."""

from __future__ import annotations

from dashboards.lake.lake import Row
from dashboards.queries.store import Rebalance
from dashboards.text import ABSENT, amount, duration, host, instant, member_label, span, visible
from dashboards.urlstate import Window
from dashboards.views import sentences
from dashboards.views.clients.libraries import library
from dashboards.views.fact import PROOF, Fact
from dashboards.views.marks import NEAR_MS
from dashboards.views.resume_position import resumed_from
from dashboards.views.timelines.segments import proof
from dashboards.views.verdict_words import NOT_OBSERVED
from schemas import loss_interval
from schemas.states import GroupProtocol, StallCause
from schemas.written import count

NAMED = 20


BEFORE_MS, AFTER_MS = 60_000, 120_000
"""Margins around a rebalance within which the poll keeps end offsets, and log lines count as near."""


def start_of(generation: Row) -> tuple[int, int]:
    """Return the earliest and the latest possible start of a rebalance, in ms."""
    g = generation
    if g["prepared_at"] is not None:
        return int(g["prepared_at"]), int(g["prepared_at"])
    latest = int(g["prepared_at_latest"])
    return min(int(g["prepared_at_earliest"]), latest), latest


def around(generation: Row) -> Window:
    """Return the window within which marks are near."""
    end = generation["completed_at"] if generation["completed_at"] is not None else generation["joined_at"]
    return Window(start_of(generation)[0] - NEAR_MS, end + NEAR_MS, is_live=False)


def cause_facts(found: Rebalance) -> list[Fact]:
    """Return why the rebalance began, whom it waited for, who came and went, and the record that proves it."""
    g, known = found.generation, sentences.names(found.named)
    slowest = known.get(g["slowest_member_id"], visible(g["slowest_member_id"], 120))
    waited = f"{slowest}, {duration(g['slowest_waited_ms'])}" if g["slowest_member_id"] else "not known"
    facts = [
        Fact("Trigger", sentences.trigger(g, known), g["trigger_evidence"]),
        Fact("Coordinator's reason", visible(g["trigger_reason"])),
        Fact("Client's reason", visible(g["client_reason"])),
        Fact("Waited for", waited),
        Fact("Joined", _named(g["joined_member_ids"], known)),
        Fact("Gone", _named(g["left_member_ids"], known)),
        Fact("Skipped generations", ABSENT if g["skipped_generations"] is None else str(g["skipped_generations"])),
        Fact(PROOF, proof(g)),
    ]
    folded = sentences.folded(g)
    return [Fact("Contains", folded), *facts] if folded else facts


def cost_facts(found: Rebalance) -> list[Fact]:
    """Return what the rebalance cost, by cause of the stops, where work resumed, what moved, and how long it took."""
    g, stalls = found.generation, found.stopped
    word = sentences.unit(g["group_type"])
    open_ = [s for s in stalls if s["stopped_ms"] is None]
    causes: dict[str, list[Row]] = {}
    for s in stalls:
        causes.setdefault(s["cause"], []).append(s)
    facts = [
        Fact(f"{word.capitalize()}-seconds lost", _lost(g, stalls)),
        *(
            Fact(
                f"of them {cause.replace('_', ' ')}" if cause != StallCause.NO_MEMBER else "not counted: no member",
                f"{amount(sum(s['stopped_ms'] or 0 for s in rows) / 1000)} in {count(len(rows), word)}",
            )
            for cause, rows in sorted(causes.items())
        ),
        Fact("Resumed", resumed_from(stalls, word)),
        Fact("Moved", sentences.resources_moved(g)),
        Fact("Took", sentences.rebalance_length(g), g["evidence"]),
    ]
    if (reason := sentences.not_costed(g)) is not None:
        facts.append(Fact("Left out", reason))
    if found.restarted:
        facts.append(Fact("Later, static restarts", sentences.cost(found.restarted, word)))
    if open_:
        facts.append(Fact("Without an owner", f"{count(len(open_), word)} so far"))
    if (episode := found.episode) is not None and episode["generations"] > 1:
        facts.append(Fact("Part of an episode", episode_text(episode, g)))
    return facts


def _lost(g: Row, stalls: list[Row]) -> str:
    if g["group_protocol"] == GroupProtocol.SHARE:
        return NOT_OBSERVED
    estimate, low, high = sentences.lost(stalls)
    if not high:
        return "none" if sentences.is_costed(g) else "not known"
    return loss_interval.written(estimate, low, high)


def episode_text(episode: Row, generation: Row) -> str:
    """Return how many generations an episode has, their first and last number, and what they lost."""
    is_share = generation["group_protocol"] == GroupProtocol.SHARE
    word = sentences.unit(generation["group_type"])
    lost = "the loss is not observed" if is_share else f"{loss_interval.of_row(episode)} {word}-seconds lost"
    numbers = span(str(episode["first_generation_id"]), str(episode["last_generation_id"]))
    return f"{count(episode['generations'], sentences.term(generation))}, {numbers}, {lost}"


def member_head(generation: Row) -> tuple[str, ...]:
    """Return the head of the table of `member_cells`."""
    came = "Rejoined (UTC)" if sentences.term(generation) == "generation" else "Reconciled (UTC)"
    return ("Member", "Member id", "Host", "Library", "Role", came, "Assigned", "Session timeout")


def member_cells(generation: Row, member: Row) -> tuple[str | int, ...]:
    """Return the cells of a member of the generation."""
    is_classic = sentences.term(generation) == "generation"
    m = member
    return (
        visible(member_label(m["member_id"], m["group_instance_id"], m["client_id"]), 80),
        visible(m["member_id"], 90),
        host(m["client_host"], 60),
        library(m),
        "leader" if m["is_leader"] else "",
        window_text(m["rejoined_at_earliest"], m["rejoined_at_latest"]) if is_classic else _reached(m),
        len(m["assigned"] or ()),
        duration(m["session_timeout_ms"]),
    )


def gone_cells(found: Rebalance) -> list[tuple[str | int, ...]]:
    """Return the cells of the members of the previous generation that are gone."""
    left = frozenset(found.generation["left_member_ids"] or ())
    return [
        (
            visible(member_label(m["member_id"], m["group_instance_id"], m["client_id"]), 80),
            visible(m["member_id"], 90),
            host(m["client_host"], 60),
            library(m),
            f"gone, had {len(m['assigned'] or ()):,}",
            ABSENT,
            0,
            duration(m["session_timeout_ms"]),
        )
        for m in found.previous_members
        if m["member_id"] in left
    ]


def members_sentence(generation: Row) -> str:
    """Return `4 members in generation 9, 0 of them static.`"""
    static = f"{generation['static_member_count']} of them static"
    return f"{count(generation['member_count'], 'member')} in {sentences.numbered(generation)}, {static}."


def window_text(earliest: int | None, latest: int | None) -> str:
    """Return the limits of a time as times of day, or a dash."""
    if earliest is None or latest is None:
        return ABSENT
    return span(instant(earliest)[11:], instant(latest)[11:])


def _reached(member: Row) -> str:
    return ABSENT if member["reconciled_at"] is None else instant(member["reconciled_at"])[11:]


def _named(ids: list[str] | None, known: dict[str, str]) -> str:
    if ids is None:
        return "not known"
    shown = ", ".join(known.get(m, visible(member_label(m), 60)) for m in ids[:NAMED])
    return (f"{shown} and {len(ids) - NAMED} more" if len(ids) > NAMED else shown) or "nobody"
