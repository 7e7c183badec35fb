"""Queries that run at the same time return their own results, raise their own errors, and run for their own reader."""

from __future__ import annotations

from contextvars import ContextVar

import pytest

from dashboards.queries.ahead import ahead

READER: ContextVar[str] = ContextVar("reader")


def test_a_query_returns_its_result_or_raises_its_error() -> None:
    assert 3 == ahead(lambda a, b: a + b, 1, b=2).result()
    with pytest.raises(ZeroDivisionError):
        ahead(lambda: 1 / 0).result()


def test_a_query_runs_in_the_context_of_its_caller() -> None:
    for name in ("ada", "grace"):
        token = READER.set(name)
        assert name == ahead(READER.get).result()
        READER.reset(token)
    with pytest.raises(LookupError):
        ahead(READER.get).result()
