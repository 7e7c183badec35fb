"""Values from the settings file or the environment: converted to their type, resolved, or rejected with a sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from jobs.config.errors import UserError

LONGEST_SHOWN = 100
LONGEST_SECRET = 65_536
LONGEST_TEXT = 1_000
MOST = 2**31 - 1
PORTS = (0, 65_535)
LIMITS = {
    "port": PORTS,
    "metrics_port": PORTS,
    "cores": (1, 1_024),
    "ingest_tasks": (1, 10_000),
    "capture_mb": (1, 1_000_000),
    "max_offsets_per_trigger": (1, MOST),
    "analyze_seconds": (1, MOST),
    "quality_seconds": (1, MOST),
    "maintain_seconds": (1, MOST),
    "notify_seconds": (1, MOST),
    "stale_seconds": (1, MOST),
    "stuck_seconds": (1, MOST),
}
"""Lowest and highest value of a setting. The default is 0 to `MOST`."""


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Return the types of a class's fields. Cached, because evaluating them takes a millisecond."""
    return get_type_hints(kind)


def all_typed(kind: type, declared: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return every value with the type of its field in `kind`.

    Raises:
        UserError: a value cannot have that type.
    """
    hints = hints_of(kind)
    return {key: typed(f"{key} in {section}", value, hints[key]) for key, value in declared.items()}


def typed(key: str, value: Any, wanted: Any) -> Any:
    """Return the value with the type of the setting. Values from the file have types; the environment has only text.

    Raises:
        UserError: the value has another type, is out of range, or is text that UTF-8 cannot encode.
    """
    if wanted is Path:
        return _path(key, value)
    if wanted is bool:
        if isinstance(value, bool):
            return value
        raise UserError(f"The setting {key} must be true or false, but is {quoted_value(value)}.")
    if wanted is str:
        return text(f"The setting {key}", value)
    kind = float if wanted is float else int
    try:
        # `int` would drop a fraction silently.
        is_cut = isinstance(value, float) and kind(value) != value
        number = None if is_cut else kind(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, bool):
        raise UserError(f"The setting {key} must be {kind.__name__}, but is {quoted_value(value)}.")
    least, most = LIMITS.get(key.partition(" ")[0], (0, MOST))
    if not least <= number <= most:
        raise UserError(
            f"The setting {key} must be {kind.__name__} from {least} to {most}, but is {quoted_value(value)}."
        )
    return number


def text(subject: str, value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return the value if it is text of at most `longest` characters without NUL that UTF-8 can encode.

    Raises:
        UserError: the value is something else.
    """
    if not isinstance(value, str):
        raise UserError(f'{subject} must be str (text in "quotes"), but is {quoted_value(value)}.')
    if "\0" in value or (longest == LONGEST_TEXT and "\n" in value) or not _is_utf8(value):
        raise UserError(f"{subject} contains a character that is not allowed in text: correct it.")
    if len(value) > longest:
        raise UserError(f"{subject} has more than {longest:,} characters: shorten it.")
    return value


def quoted_value(value: Any) -> str:
    """Return a value as a message may quote it. Tables and lists appear by kind only; they may be deep or long."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return repr(value if not isinstance(value, str) else value[:LONGEST_SHOWN])


def table(subject: str, value: Any) -> dict[str, Any]:
    """Return the value if it is a table.

    Raises:
        UserError: the value is something else.
    """
    if not isinstance(value, dict):
        raise UserError(f"{subject} must be a table: write [{subject}] on a line of its own.")
    return value


def tables(key: str, value: Any) -> list[Any]:
    """Return the value if it is a list, as of tables.

    Raises:
        UserError: the value is something else.
    """
    if not isinstance(value, list):
        raise UserError(f"{key} must be a list of tables: write [[{key}]] on a line of its own.")
    return value


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _path(key: str, value: Any) -> Path:
    written = text(f"The setting {key}", str(value) if isinstance(value, Path) else value)
    if not written.strip():
        raise UserError(f"The setting {key} is empty: name a folder or an address, or remove it.")
    try:
        return Path(written).expanduser()
    except RuntimeError:
        raise UserError(f"The setting {key} names the home folder of an unknown user: {quoted_value(value)}.") from None


def refuse_unknown(declared: Mapping[str, Any], known: set[str], section: str) -> None:
    """Raise `UserError` for an unknown key, with the nearest valid key."""
    for each in declared:
        if each not in known:
            key = each[:LONGEST_SHOWN]
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}."
            raise UserError(f"Unknown setting {key!r} in {section}: {hint}")


REFERENCES = ("env:", "file:")
"""Beginnings of a value that says where a secret is."""


def secret(subject: str, value: str) -> str:
    """Return the secret that `env:NAME` or `file:PATH` refers to; return any other value unchanged.

    Never print or store the result. An empty `value` means that the setting is absent.

    Raises:
        UserError: the value or its target is missing, blank or not UTF-8 text. An empty secret would protect nothing.
    """
    found = _referred(subject, value)
    try:
        found.encode()
    except UnicodeEncodeError:
        raise UserError(f"{subject} is not UTF-8 text: write env:NAME or file:PATH of a secret that is.") from None
    if value.strip() and not found.strip():
        raise UserError(f"{subject} refers to nothing: {value} is empty, put a secret there.")
    if value and not value.strip():
        raise UserError(f"{subject} is blank: write env:NAME or file:PATH.")
    return found


def _referred(subject: str, value: str) -> str:
    kind, _, reference = value.partition(":")
    if kind == "env":
        if reference not in os.environ:
            raise UserError(f"{subject} refers to the environment variable {reference}, which is not set.")
        return os.environ[reference]
    if kind == "file":
        try:
            with Path(reference).open(encoding="utf-8") as file:
                return file.read(LONGEST_SECRET).strip()
        except OSError as error:
            raise UserError(f"{subject} refers to the file {reference}: {error.strerror}.") from None
        except ValueError:
            raise UserError(f"{subject} refers to the file {reference}, which is not UTF-8 text.") from None
    return value
