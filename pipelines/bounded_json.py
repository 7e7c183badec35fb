"""JSON written by strangers: one value of limited depth, finite 64-bit numbers and text that UTF-8 can hold."""

from __future__ import annotations

import json
import math
from typing import Any

from schemas.json_depth import DEEPEST_JSON, is_too_deep

INT64 = range(-(2**63), 2**63)


def bounded_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is broken or exceeds a limit; the message says which in a few words.
    """
    try:
        value = json.loads(
            text, parse_int=_integer, parse_float=_finite, parse_constant=_constant, object_pairs_hook=_object
        )
    except RecursionError:
        raise ValueError(f"it is nested more than {DEEPEST_JSON} deep") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error.msg} at character {error.pos})") from None
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
        raise ValueError("it holds a number beyond 64 bits")
    return found


def _finite(digits: str) -> float:
    found = float(digits)
    if not math.isfinite(found):
        raise ValueError("it holds a number that is not finite")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"it holds {name}, which is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it holds the same key twice")
    return found


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a surrogate pair, which is no text") from None
