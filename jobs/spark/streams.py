"""Restarts streams that fail for an unexpected reason.

A killed worker, or one that connects too late on a busy machine, fails a whole query of Spark. No data is lost, because
a batch that is read again is written only once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from jobs.config.errors import LateWorkerError, PassingError, UserError, one_line
from jobs.config.terminal import say
from jobs.spark.lost_worker import CALM_S, lost_worker

RESTS_S = (1.0, 10.0, 60.0)
"""Pauses in seconds before each restart. After the last one, the stream fails. A failure that may be temporary repeats
the last pause instead.
"""

MORE_RESTS = 3
"""Further restarts, each after the last pause, if a worker connects too late. Spark waits ten seconds for it, and a
machine may be busy for minutes.
"""

Begin = Callable[[], StreamingQuery]
OnFailure = Callable[[Exception], None]


def report(error: Exception, what: str = "Reading") -> None:
    """Print one line for the failure."""
    say(f"{what} failed and is restarted: {one_line(error)}")


@dataclass(slots=True)
class _Stream:
    begin: Begin
    query: StreamingQuery | None = None
    started: float = 0.0
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
        self._streams = [_Stream(each) for each in begin]
        for stream in self._streams:
            self._start(stream)

    def restart_due(self) -> bool:
        """Restart the streams that are due; return whether any stream still runs.

        Raises:
            UserError: a stream failed for a known reason.
            LostWorkerError: a stream lost workers too often.
            StreamingQueryException: a stream failed too often for another reason.
        """
        going = [self._goes_on(stream) for stream in self._streams]
        return any(going)

    def wait(self) -> None:
        """Return after all streams have ended. Raise the exceptions of `restart_due`; then all streams are stopped."""
        try:
            while self.restart_due():
                for stream in self._streams:
                    if stream.query and stream.due is None:
                        with suppress(StreamingQueryException):
                            stream.query.awaitTermination(1)
                    else:
                        time.sleep(max(0.0, (stream.due or 0.0) - time.monotonic()))
        finally:
            self.stop()

    def stop(self) -> None:
        """Stop all streams, in the middle of a batch too."""
        for stream in self._streams:
            if stream.query:
                stream.query.stop()

    def _start(self, stream: _Stream) -> None:
        stream.started, stream.due = time.monotonic(), None
        try:
            stream.query = stream.begin()
        except Exception as error:
            # Spark asks a Python worker for the schema of a source.
            if (lost := lost_worker(error)) is None:
                raise
            self._failed(stream, lost, stream.started)

    def _goes_on(self, stream: _Stream) -> bool:
        now = time.monotonic()
        if stream.due is not None:
            if now >= stream.due:
                self._start(stream)
            return True
        assert stream.query is not None
        if stream.query.isActive:
            return True
        error = stream.query.exception()
        if error is not None:
            self._failed(stream, _sentence(error), now)
        return error is not None

    def _failed(self, stream: _Stream, error: Exception, now: float) -> None:
        if now - stream.started > CALM_S:
            stream.failures = 0
        may_pass = self._is_endless and isinstance(error, (PassingError, LateWorkerError))
        most = len(self._rests_s) + MORE_RESTS * isinstance(error, LateWorkerError)
        if not may_pass and (isinstance(error, UserError) or stream.failures >= most):
            raise error from None
        stream.due = now + self._rests_s[min(stream.failures, len(self._rests_s) - 1)]
        stream.failures += 1
        self._on_failure(error)


def _sentence(error: StreamingQueryException) -> Exception:
    """Return the `UserError`, `PassingError` or lost worker behind the error, without the traces that Spark adds."""
    found = re.findall(rf"({UserError.__name__}|{PassingError.__name__}): (.+)", str(error))
    if not found:
        return lost_worker(error) or error
    kind, sentence = found[-1]
    return PassingError(sentence) if kind == PassingError.__name__ else UserError(sentence)
