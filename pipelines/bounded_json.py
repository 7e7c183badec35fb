"""A parser for untrusted JSON: limited depth, finite 64-bit numbers and text that UTF-8 can encode."""

from __future__ import annotations

import json
import math
from typing import Any

from schemas.json_depth import DEEPEST_JSON, is_too_deep

INT64 = range(-(2**63), 2**63)


def bounded_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is broken or exceeds a limit; the message describes the problem in a few words.
    """
    try:
        value = json.loads(
            text, parse_int=_integer, parse_float=_finite, parse_constant=_constant, object_pairs_hook=_object
        )
    except RecursionError:
        raise ValueError(f"it is nested more than {DEEPEST_JSON} deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not valid JSON ({error.msg} at character {error.pos})") from None
    if is_too_deep(value):
        raise ValueError(f"it is nested more than {DEEPEST_JSON} deep")
    if "\\u" in text:
        _refuse_surrogates(value)
    return value


def cost(text: str) -> int:
    """Return an upper estimate of the bytes that Python needs for the value of this JSON text."""
    return 2 * len(text) + 100 * (text.count(",") + text.count("[") + text.count("{"))


def _integer(digits: str) -> int:
    if len(digits) > 20 or (found := int(digits)) not in INT64:
        raise ValueError("it contains a number beyond 64 bits")
    return found


def _finite(digits: str) -> float:
    found = float(digits)
    if not math.isfinite(found):
        raise ValueError("it contains a number that is not finite")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"it contains {name}, which is not valid JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it contains the same key twice")
    return found


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it contains half of a surrogate pair, which UTF-8 cannot encode") from None
