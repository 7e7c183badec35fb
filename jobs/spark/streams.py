"""Restarts streams that fail for an unexpected reason.

A killed worker, or one that connects too late on a busy machine, fails a whole query of Spark. No data is lost, because
a batch that is read again is written only once.
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
from jobs.spark.jvm_output import LATE

RESTS_S = (1.0, 10.0, 60.0)
"""Pauses in seconds before each restart. After the last one, the stream fails. A failure that may be temporary repeats
the last pause instead.
"""

CALM_S = 600.0
"""Seconds of running after which a failure counts as the first one again."""

Begin = Callable[[], StreamingQuery]
OnFailure = Callable[[Exception], None]


def report(error: Exception) -> None:
    """Print one line for the failure."""
    say(f"Reading failed and is restarted: {one_line(error)}")


@dataclass(slots=True)
class _Stream:
    begin: Begin
    query: StreamingQuery
    started: float = field(default_factory=time.monotonic)
    failures: int = 0
    due: float | None = None


class Streams:
    """Streams with the functions that start them. `on_failure` gets each failure after which a stream is restarted.

    With `is_endless`, no stream ends because a broker does not respond or a worker connects too late.
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

    def restart_due(self) -> bool:
        """Restart the streams that are due; return whether any stream still runs.

        Raises:
            UserError: a stream failed for a known reason.
            StreamingQueryException: a stream failed too often.
        """
        going = [self._goes_on(stream) for stream in self._streams]
        return any(going)

    def wait(self) -> None:
        """Return after all streams have ended. Raise the exceptions of `restart_due`; then all streams are stopped."""
        try:
            while self.restart_due():
                for stream in self._streams:
                    if stream.due is None:
                        with suppress(StreamingQueryException):
                            stream.query.awaitTermination(1)
                    else:
                        time.sleep(max(0, stream.due - time.monotonic()))
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop all streams, in the middle of a batch too."""
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
    """Return the `UserError` or `PassingError` of a worker or of the driver, without the traces that Spark adds."""
    found = re.findall(rf"({UserError.__name__}|{PassingError.__name__}): (.+)", str(error))
    if not found:
        return error
    kind, sentence = found[-1]
    return PassingError(sentence) if kind == PassingError.__name__ else UserError(sentence)
