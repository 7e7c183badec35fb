"""Values as a person stated them, in the file or the environment: typed, resolved, or refused in a sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

from jobs.errors import UserError


def all_typed(kind: type, stated: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Every value as the field of `kind` wants it.

    Raises:
        UserError: one is of another type.
    """
    hints = get_type_hints(kind)
    return {key: typed(f"{key} in {place}", value, hints[key]) for key, value in stated.items()}


def typed(key: str, value: Any, wanted: Any) -> Any:
    """The value as the setting's type: the file has types, the environment only text."""
    if wanted is Path:
        return Path(value).expanduser()
    if wanted is bool:
        if isinstance(value, bool):
            return value
        raise UserError(f"The setting {key} must be true or false, but is {value!r}.")
    kind = wanted if wanted in (int, float, str) else int
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise UserError(f"The setting {key} must be {kind.__name__}, but is {value!r}.") from None


def refuse_unknown(stated: Mapping[str, Any], known: set[str], place: str) -> None:
    """Name an unknown key with the nearest valid one."""
    for key in stated:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}."
            raise UserError(f"Unknown setting {key!r} in {place}: {hint}")


def secret(what: str, value: str) -> str:
    """What `env:NAME` or `file:PATH` refers to; any other value as it is. Never print or store what this returns."""
    kind, _, reference = value.partition(":")
    if kind == "env":
        if reference not in os.environ:
            raise UserError(f"{what} refers to the environment variable {reference}, which is not set.")
        return os.environ[reference]
    if kind == "file":
        try:
            return Path(reference).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UserError(f"{what} refers to the file {reference}: {error.strerror}.") from None
    return value
