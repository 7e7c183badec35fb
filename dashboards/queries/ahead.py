"""Runs queries of a page at the same time, in a few threads that all pages share."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = max(2, os.cpu_count() or 2)
"""More queries at once would not end sooner, and each needs memory."""

_POOL = ThreadPoolExecutor(THREADS, thread_name_prefix="query")


def ahead(ask: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Start a query now; `result()` waits for it, and raises its error.

    It runs for the same reader as the caller, whose context it copies. A query must not wait for another one that is
    started here, because all threads could then wait.
    """
    context = copy_context()
    return _POOL.submit(lambda: context.run(ask, *args, **kwargs))
