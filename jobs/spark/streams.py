"""Streams that go on: one that ends for a reason which nobody has a sentence for is started again where it stopped.

A worker that is killed, or comes too late on a machine that is busy, fails a whole query of Spark's, and nothing of it
is lost: a batch that is read again is written once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from jobs.config.errors import PassingError, UserError, one_line
from jobs.config.terminal import say

RESTS_S = (1.0, 10.0, 60.0)
"""Before each further start; then it is given up, but for what may pass by itself, for which the last one stands."""

LATE = re.compile("Python worker failed to connect back|CANNOT_OPEN_SOCKET")
"""Spark gives a Python worker ten seconds to come, which a busy machine may need for longer than all the rests."""

CALM_S = 600.0
"""What fails so long after it was started has its first failure again."""

Begin = Callable[[], StreamingQuery]
OnFailure = Callable[[Exception], None]


def report(error: Exception) -> None:
    """A line of it."""
    say(f"Reading failed, and is started again: {one_line(error)}")


@dataclass(slots=True)
class _Stream:
    begin: Begin
    query: StreamingQuery
    started: float = field(default_factory=time.monotonic)
    failures: int = 0
    due: float | None = None


class Streams:
    """Streams by what starts them; `on_failure` is told of each failure that is not the end. With `is_endless` none
    ends because of a broker that does not answer, or a worker that comes too late.
    """

    def __init__(
        self,
        begin: Iterable[Begin],
        *,
        rests_s: Sequence[float] = RESTS_S,
        on_failure: OnFailure = report,
        is_endless: bool = False,
    ) -> None:
        self._rests_s = rests_s
        self._is_endless = is_endless
        self._on_failure = on_failure
        self._streams = [_Stream(each, each()) for each in begin]

    def look(self) -> bool:
        """Start again what is due; returns whether any goes on.

        Raises:
            UserError: one failed for a reason that has a sentence.
            StreamingQueryException: one failed too often.
        """
        going = [self._goes_on(stream) for stream in self._streams]
        return any(going)

    def wait(self) -> None:
        """Until all have ended; raises what `look` does, and then all are stopped."""
        try:
            while self.look():
                for stream in self._streams:
                    if stream.due is None:
                        with suppress(StreamingQueryException):
                            stream.query.awaitTermination(1)
                    else:
                        time.sleep(max(0, stream.due - time.monotonic()))
        finally:
            self.stop()

    def stop(self) -> None:
        """End all, whatever they are at."""
        for stream in self._streams:
            stream.query.stop()

    def _goes_on(self, stream: _Stream) -> bool:
        now = time.monotonic()
        if stream.due is not None:
            if now >= stream.due:
                stream.query, stream.started, stream.due = stream.begin(), now, None
            return True
        if stream.query.isActive:
            return True
        error = stream.query.exception()
        if error is not None:
            self._failed(stream, _sentence(error), now)
        return error is not None

    def _failed(self, stream: _Stream, error: Exception, now: float) -> None:
        if now - stream.started > CALM_S:
            stream.failures = 0
        may_pass = self._is_endless and (isinstance(error, PassingError) or LATE.search(str(error)) is not None)
        if not may_pass and (isinstance(error, UserError) or stream.failures >= len(self._rests_s)):
            raise error from None
        stream.due = now + self._rests_s[min(stream.failures, len(self._rests_s) - 1)]
        stream.failures += 1
        self._on_failure(error)


def _sentence(error: StreamingQueryException) -> Exception:
    """What a worker or the driver's own code said, out of the traces that Spark wraps it in."""
    said = re.findall(rf"({UserError.__name__}|{PassingError.__name__}): (.+)", str(error))
    if not said:
        return error
    kind, sentence = said[-1]
    return PassingError(sentence) if kind == PassingError.__name__ else UserError(sentence)
