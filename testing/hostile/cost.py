"""The cost of hostile input: the rows and bytes made from it, the time, and how the time grows with the input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testing.processor_time import RUNS, timed

GROWTH = 9.0
"""With 4 times the input, n log n work takes 4.5 times as long, and quadratic work 16 times."""


@dataclass(frozen=True, slots=True)
class Made:
    """The rows made from an input."""

    rows: int
    size: int

    def __add__(self, other: Made) -> Made:
        return Made(self.rows + other.rows, self.size + other.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """`make(n)` returns the size of hostile input in bytes, and the function that turns it into rows.

    The budgets are rows per kB of input, bytes of rows per byte of input, and seconds per MB.
    """

    name: str
    kind: str
    n: int
    make: Callable[[int], tuple[int, Callable[[], Made]]]
    rows_per_kb: float
    bytes_per_byte: float
    seconds_per_mb: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of an attack with 4n of its input. `growth`: its time as a multiple of the time for n."""

    attack: Attack
    size: int
    made: Made
    seconds: float
    growth: float

    def exceeded(self) -> list[str]:
        """Return the names of the exceeded budgets."""
        attack, mb = self.attack, self.size / 1e6
        over = {
            "rows": self.made.rows > attack.rows_per_kb * self.size / 1e3,
            "bytes": self.made.size > attack.bytes_per_byte * self.size,
            "seconds": self.seconds > attack.seconds_per_mb * mb,
            "growth": self.growth > GROWTH,
        }
        return [name for name, is_over in over.items() if is_over]


def measured(attack: Attack, scale: float = 1.0) -> Cost:
    n = max(1, round(attack.n * scale))
    attack.make(n)[1]()  # compiles and fills caches
    few, _, _ = _timed(attack, n)
    seconds, size, made = _timed(attack, 4 * n)
    return Cost(attack=attack, size=size, made=made, seconds=seconds, growth=seconds / max(few, 0.01))


def _timed(attack: Attack, n: int) -> tuple[float, int, Made]:
    """Return the seconds of the fastest run, since other work of the machine only adds time, the size and the rows."""
    return min((_timed_once(attack, n) for _ in range(RUNS)), key=lambda run: run[0])


def _timed_once(attack: Attack, n: int) -> tuple[float, int, Made]:
    size, work = attack.make(n)
    seconds, made = timed(work)
    return seconds, size, made
