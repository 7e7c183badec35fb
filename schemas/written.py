"""How durations, numbers and intervals are written, on pages, in alerts, in explanations and by commands."""

from __future__ import annotations

EN_DASH, MINUS, ABOUT = "\N{EN DASH}", "\N{MINUS SIGN}", "\N{ALMOST EQUAL TO}"
PARTS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
"""Seconds of a unit, its name, and the same of the unit of the rest; two days are the least written as days."""

SECONDS_UP_TO_MS, DAYS_FROM_S = 99_950, 172_800


def duration(ms: float) -> str:
    """Return milliseconds in the largest unit that fits and the next one, if the rest has any of it.

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
    """Return a number with a decimal below 100 and thousands separated above; a negative one has a real minus sign.

    >>> [amount(value) for value in (0, 0.04, 9, 99.96, 12_345.6)]
    ['0', '0.0', '9.0', '100', '12,346']
    """
    text = f"{abs(value):,.1f}" if 0 < abs(value) < 99.95 else f"{abs(value):,.0f}"
    return f"{MINUS}{text}" if value < 0 else text


def signed(value: float) -> str:
    """Return `amount` with its sign, also of a positive number."""
    return f"+{amount(value)}" if value > 0 else amount(value)


def between(low: float, high: float) -> str:
    """Return two limits as numbers around an en dash, or one number if they are written the same."""
    first, last = amount(low), amount(high)
    return first if first == last else f"{first}{EN_DASH}{last}"


def bounded(value: float, low: float, high: float) -> str:
    """Return an estimate with its limits in parentheses, or the value alone if they are written as one number.

    >>> bounded(61, 58.2, 172).replace(EN_DASH, " to "), bounded(61, 61, 61)
    ('≈ 61.0 (58.2 to 172)', '61.0')
    """
    first, last = amount(low), amount(high)
    return amount(value) if first == last else f"{ABOUT} {amount(value)} ({between(low, high)})"


def count(number: int, noun: str) -> str:
    """Return a number of things: `1 rebalance`, `4 rebalances`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
