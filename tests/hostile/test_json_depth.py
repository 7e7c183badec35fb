"""One limit on nesting for all JSON from outside: messages, captures and requests."""

from __future__ import annotations

import json

import pytest

from dashboards.web.requests import parsed
from pipelines.bounded_json import bounded_json
from pipelines.coordinator_events import Unreadable
from pipelines.log_envelopes import unwrap
from schemas.json_depth import DEEPEST_JSON, DEEPEST_REQUEST, is_too_deep


def nested(levels: int, inner: str = "1") -> str:
    return (
        '{"message":' * (levels // 2)
        + "[" * (levels - levels // 2)
        + inner
        + "]" * (levels - levels // 2)
        + "}" * (levels // 2)
    )


@pytest.mark.parametrize("inner", ["1", "", "[]", "{}"])
def test_levels_are_counted_exactly(inner) -> None:
    more = 1 if inner in ("[]", "{}") else 0
    assert not is_too_deep(json.loads(nested(DEEPEST_JSON - more, inner)))
    assert is_too_deep(json.loads(nested(DEEPEST_JSON + 1 - more, inner)))


@pytest.mark.parametrize(("read", "most"), [(bounded_json, DEEPEST_JSON), (parsed, DEEPEST_REQUEST)])
def test_readers_refuse_what_is_deeper(read, most) -> None:
    assert read(nested(most))
    for levels in (most + 1, 100_000):
        with pytest.raises(ValueError, match="nested"):
            read(nested(levels))


def test_a_message_that_is_deeper_is_unreadable() -> None:
    around = '{"message":"a line","more":%s}'
    assert not isinstance(unwrap((around % nested(DEEPEST_JSON - 1)).encode()), Unreadable)
    assert isinstance(unwrap((around % nested(DEEPEST_JSON)).encode()), Unreadable)
