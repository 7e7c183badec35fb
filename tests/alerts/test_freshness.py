"""How far a history is known: idle is not blind, catching up is not stale, and no response is not health."""

from __future__ import annotations

from pipelines.gold.alerts.freshness import Asked, Freshness, Read, freshness
from testing.alerts.rows import HOUR, MINUTE, NOW

STALE = 90_000


def read(upto: int = 100, newest: int | None = NOW - 5_000, still: int | None = NOW - 5_000, **described) -> Read:
    return Read(upto={0: upto}, newest_ms=newest, still_since_ms=still, **described)


def asked(end: int = 100, at: int = NOW - 1_000) -> Asked:
    return Asked(at_ms=at, ends={0: (0, end)})


def seen(*described) -> Freshness:
    return freshness(NOW, STALE, *described)


def test_an_idle_cluster_is_known_up_to_now():
    idle = seen(read(newest=NOW - 10 * HOUR, still=NOW - 10 * HOUR), asked())
    assert (True, NOW - 1_000, 0, None) == (idle.is_fresh, idle.known_until_ms, idle.unread, idle.blind_since_ms)
    assert 10 * HOUR - 1_000 == idle.silent_ms
    assert 0 == seen(read(newest=NOW - HOUR), asked(end=140)).silent_ms, "what waits may be anything"


def test_a_busy_cluster_is_known_up_to_its_newest_record():
    busy = seen(read(), asked(end=140))
    assert (True, NOW - 5_000, 40, None) == (busy.is_fresh, busy.known_until_ms, busy.unread, busy.blind_since_ms)


def test_records_that_wait_while_nothing_is_read_are_blindness():
    blind = seen(read(newest=NOW - 2 * MINUTE, still=NOW - 2 * MINUTE), asked(end=140))
    assert (False, True, NOW - 2 * MINUTE) == (blind.is_fresh, blind.is_broker_there, blind.blind_since_ms)


def test_catching_up_is_neither_fresh_nor_blind():
    behind = seen(read(newest=NOW - 9 * HOUR, still=NOW - 3_000), asked(end=10_000))
    assert (False, None) == (behind.is_fresh, behind.blind_since_ms)


def test_who_has_just_begun_to_watch_cannot_tell_yet():
    new = seen(read(newest=NOW - HOUR, still=NOW), asked(end=140))
    assert (False, None, False) == (new.is_fresh, new.blind_since_ms, new.is_certain)


def test_a_single_look_goes_by_the_time_of_the_newest_record():
    assert seen(read(newest=NOW - HOUR, still=None), asked(end=140)).blind_since_ms == NOW - HOUR
    assert seen(read(newest=NOW - HOUR, still=None), None).blind_since_ms == NOW - HOUR
    assert seen(read(still=None), None).is_fresh


def test_brokers_that_do_not_answer_are_kept_apart():
    silent = Asked(at_ms=NOW, ends=None, error="timed out", silent_since_ms=NOW - 2 * MINUTE)
    found = seen(read(newest=NOW - 2 * MINUTE), silent)
    assert (False, NOW - 2 * MINUTE) == (found.is_broker_there, found.blind_since_ms)
    assert "no broker answers (timed out)" == found.why


def test_what_is_read_and_not_built_is_not_known():
    found = seen(read(built_ms=NOW - HOUR), asked())
    assert (False, NOW - HOUR, NOW - HOUR) == (found.is_fresh, found.known_until_ms, found.blind_since_ms)


def test_records_that_retention_took_are_not_waited_for():
    assert 0 == seen(read(upto=5), Asked(at_ms=NOW, ends={0: (100, 100), 1: (7, 7)})).unread


def test_nothing_at_all_is_not_fresh():
    nothing = seen(Read(upto={}, newest_ms=None), None)
    assert (False, None) == (nothing.is_fresh, nothing.known_until_ms)
