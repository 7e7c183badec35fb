"""When a line was printed, in the broker's own clock and zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipelines.coordinator_events import Unreadable, parse_line
from pipelines.log_layouts import LAYOUTS, layout, zone
from schemas.states import QuarantineReason
from tests.coordinator_log.lines import MANAGER, NEW, line, parse

MESSAGE = f"{NEW}Stabilized group orders generation 7 with 3 members."
HOUR_MS = 3_600_000


def at(text: str, in_zone: str = "UTC") -> tuple[datetime, int]:
    event = parse(line(MESSAGE, at=text), in_zone=in_zone)
    return event.event_at, event.event_precision_ms


@pytest.mark.parametrize(
    ("text", "name", "utc", "precision_ms"),
    [
        ("2026-11-21 06:41:02,803", "UTC", datetime(2026, 11, 21, 6, 41, 2, 803_000, UTC), 1),
        ("2026-11-21T06:41:02.803", "UTC", datetime(2026, 11, 21, 6, 41, 2, 803_000, UTC), 1),
        ("2026-11-21 06:41:02.803921", "UTC", datetime(2026, 11, 21, 6, 41, 2, 803_921, UTC), 1),
        ("2026-11-21 06:41:02", "UTC", datetime(2026, 11, 21, 6, 41, 2, 0, UTC), 1000),
        ("2026-11-21 06:41:02,803", "Europe/Berlin", datetime(2026, 11, 21, 5, 41, 2, 803_000, UTC), 1),
        ("2026-07-21 06:41:02,803", "Europe/Berlin", datetime(2026, 7, 21, 4, 41, 2, 803_000, UTC), 1),
        ("2026-11-21 06:41:02,803", "Asia/Kathmandu", datetime(2026, 11, 21, 0, 56, 2, 803_000, UTC), 1),
        ("2026-11-21 06:41:02.803Z", "Europe/Berlin", datetime(2026, 11, 21, 6, 41, 2, 803_000, UTC), 1),
        ("2026-11-21 06:41:02,803+0530", "UTC", datetime(2026, 11, 21, 1, 11, 2, 803_000, UTC), 1),
        ("2026-11-21 06:41:02,803-08:00", "UTC", datetime(2026, 11, 21, 14, 41, 2, 803_000, UTC), 1),
        ("2026-11-21T06:41:02,803-08", "UTC", datetime(2026, 11, 21, 14, 41, 2, 803_000, UTC), 1),
        # 2026-10-25 03:00 +02:00 became 02:00 +01:00: half past two was twice.
        ("2026-10-25 01:59:59,999", "Europe/Berlin", datetime(2026, 10, 24, 23, 59, 59, 999_000, UTC), 1),
        ("2026-10-25 02:30:00,000", "Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), HOUR_MS + 1),
        ("2026-10-25 02:30:00", "Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), HOUR_MS + 1000),
        ("2026-10-25 03:00:00,000", "Europe/Berlin", datetime(2026, 10, 25, 2, 0, tzinfo=UTC), 1),
    ],
)
def test_a_printed_time_is_an_instant_with_its_precision(text, name, utc, precision_ms):
    assert (utc, precision_ms) == at(text, name)


def test_both_meanings_of_a_repeated_hour_lie_within_its_precision():
    earliest, precision_ms = at("2026-10-25 02:30:00,000", "Europe/Berlin")
    for fold in (0, 1):
        meant = datetime(2026, 10, 25, 2, 30, tzinfo=zone("Europe/Berlin"), fold=fold).astimezone(UTC)
        assert earliest <= meant < earliest + timedelta(milliseconds=precision_ms)


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-21 06:41:02,803",
        "2026-02-30 06:41:02,803",
        "2026-11-21 24:41:02,803",
        "2026-11-21 06:41:61,803",
        "1970-01-01 00:00:00,000",
        "9999-12-31 23:59:59,999",
        "0000-00-00 00:00:00,000",
        "not a time, but long",
        "\u0662\u0660\u0662\u0666-11-21 06:41:02,803",
    ],
)
def test_a_lifecycle_line_without_a_possible_time_is_quarantined(text):
    found = parse(line(MESSAGE, at=text))
    assert isinstance(found, Unreadable)
    assert QuarantineReason.INVALID_TIMESTAMP == found.reason
    assert text[:9] in found.detail


def test_an_hour_that_the_zone_skipped_is_no_time():
    assert isinstance(parse(line(MESSAGE, at="2026-03-29 02:30:00,000"), in_zone="Europe/Berlin"), Unreadable)


def test_a_bad_time_before_any_other_line_is_none_of_ours():
    assert parse(line(f"{NEW}Starting up.", at="9999-12-31 23:59:59,999")) is None


@pytest.mark.parametrize("name", ["Nowhere/City", "", "../etc/passwd", "UTC\x00"])
def test_an_unknown_zone_is_named(name):
    with pytest.raises(ValueError, match="There is no time zone"):
        zone(name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[%d] %p %m%n", "lacks logger"),
        ("no such layout", "lacks at, logger, message: name one of default, "),
        ("[%d] %throwable %m (%c)%n", "%throwable, which is not known"),
        ("[%d] %p %m (%c{1.})%n", "%c{1.}, which is not known"),
        (r"(?P<at>.*) (?P<message>.* (?P<logger>.*)", "not a valid regular expression"),
    ],
)
def test_a_layout_that_cannot_work_is_reported_in_one_sentence(text, words):
    with pytest.raises(ValueError, match=r"^The log layout .*\.$") as described:
        layout(text)
    assert words in str(described.value)


@pytest.mark.parametrize(
    ("pattern", "head"),
    [
        ("[%d] %5p [%c{2}] %m%n", " INFO [group.GroupMetadataManager]"),
        ("[%d] %-5level [%-70logger] %m%n", f"INFO  [{MANAGER:70}]"),
        ("[%d] %p [%30c{1}] %m%n", f"INFO [{'GroupMetadataManager':>30}]"),
        ("[%d] %p [%c{20}] %m%n", f"INFO [{MANAGER}]"),
    ],
)
def test_a_padded_or_shortened_logger_is_known(pattern, head):
    found = parse_line(f"[2026-11-21 06:41:02,803] {head} {MESSAGE}", layout(pattern), zone("UTC"))
    assert "stabilized" == found.event_kind


def test_every_named_layout_works():
    assert all(layout(name).pattern for name in LAYOUTS)
