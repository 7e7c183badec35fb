"""What is due after every batch, and may become long: it rests when it took long, so that batches go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SHARE = 0.2
"""Of the time, at most."""


@dataclass(slots=True)
class Pace:
    """Lets something be done, unless it took so long the last time that it has to rest still."""

    clock: Callable[[], float] = time.monotonic
    _rests_until: float = float("-inf")

    def let(self, act: Callable[[], object]) -> bool:
        """Whether it was done."""
        began = self.clock()
        if began < self._rests_until:
            return False
        act()
        ended = self.clock()
        self._rests_until = ended + (ended - began) * (1 / SHARE - 1)
        return True
