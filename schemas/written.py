"""Formats of durations, numbers and intervals on pages, in alerts, in explanations and in command output."""

from __future__ import annotations

from datetime import UTC, datetime

EN_DASH, MINUS, ABOUT = "\N{EN DASH}", "\N{MINUS SIGN}", "\N{ALMOST EQUAL TO}"
PARTS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
"""Per unit: its seconds and its name, then the seconds and the name of the next smaller unit. Days are used from two
days on."""

SECONDS_UP_TO_MS, DAYS_FROM_S = 99_950, 172_800
NOTHING = 0.05
"""Numbers that one decimal shows as 0 are below this."""


def duration(ms: float) -> str:
    """Return milliseconds in the largest unit that fits, followed by the next smaller unit if that is not 0.

    >>> [duration(ms) for ms in (340, 12_400, 45_000, 312_000, 300_000, 7_500_000, 266_400_000)]
    ['340 ms', '12.4 s', '45 s', '5 min 12 s', '5 min', '2 h 5 min', '3 d 2 h']
    """
    if ms < 0:
        return f"{MINUS}{duration(-ms)}"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < SECONDS_UP_TO_MS:
        return f"{ms / 1000:.1f} s".replace(".0 s", " s")
    seconds = round(ms / 1000)
    size, word, part, rest = next(each for each in PARTS if seconds >= (DAYS_FROM_S if each[1] == "d" else each[0]))
    more = seconds % size // part
    return f"{seconds // size:,} {word}" + (f" {more} {rest}" if more else "")


def amount(value: float) -> str:
    """Return a number with one decimal below 100 and thousands separators above; negative numbers get a real minus.

    >>> [amount(value) for value in (0, 0.04, 9, 99.96, 12_345.6)]
    ['0', '0.0', '9.0', '100', '12,346']
    """
    text = f"{abs(value):,.1f}" if 0 < abs(value) < 99.95 else f"{abs(value):,.0f}"
    return f"{MINUS}{text}" if value < 0 else text


def signed(value: float) -> str:
    """Return `amount` with a sign, also for positive numbers; 0 for what one decimal shows as 0."""
    if abs(value) < NOTHING:
        return amount(0)
    return f"+{amount(value)}" if value > 0 else amount(value)


def signed_between(low: float, high: float) -> str:
    """Return two signed limits, `-3.0 to +7.1`, or one limit if both are written alike."""
    first, last = signed(low), signed(high)
    return first if first == last else f"{first} to {last}"


def instant(ms: int) -> str:
    """Return a time in milliseconds since the epoch as text in UTC.

    >>> instant(1_795_262_500_123)
    '2026-11-21 12:01:40 UTC'
    """
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def percent(ratio: float, decimals: int = 0) -> str:
    """Return a share of 1 in percent; a negative one gets a real minus.

    >>> [percent(0.25), percent(0.999, 1)]
    ['25 %', '99.9 %']
    """
    return f"{ratio * 100:.{decimals}f} %".replace("-", MINUS)


def span(first: str, last: str) -> str:
    """Return two limits with an en dash and no spaces between them, or one limit if both are written alike."""
    return first if first == last else f"{first}{EN_DASH}{last}"


def between(low: float, high: float) -> str:
    """Return `span` of two amounts."""
    return span(amount(low), amount(high))


def bounded(value: float, low: float, high: float, label: str = "") -> str:
    """Return an estimate with its limits in parentheses, or the value alone if both limits are written alike.

    `label` says what the limits are.

    >>> bounded(61, 58.2, 172).replace(EN_DASH, " to "), bounded(61, 61, 61)
    ('≈ 61.0 (58.2 to 172)', '61.0')
    >>> bounded(61, 58.2, 172, "90 %").replace(EN_DASH, " to ")
    '≈ 61.0 (90 %: 58.2 to 172)'
    """
    first, last = amount(low), amount(high)
    if first == last:
        return amount(value)
    return f"{ABOUT} {amount(value)} ({f'{label}: ' if label else ''}{between(low, high)})"


def capitalized(text: str) -> str:
    """Return the text with its first letter in upper case, and the others as they are."""
    return text[:1].upper() + text[1:]


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 rebalance`, `4 rebalances`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Return a number of bytes in powers of 1,000.

    >>> [size(number) for number in (812, 80_200_000, 3.5e12)]
    ['812 B', '80.2 MB', '3.5 TB']
    """
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 999.5:
            return f"{number:,.0f} B" if unit == "B" else f"{number:,.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"
