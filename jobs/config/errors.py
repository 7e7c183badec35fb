"""The exceptions whose text is the whole message to the user, and the one-line summary of any other exception."""

from __future__ import annotations

import re
from collections.abc import Iterable

from schemas.visible import visible_text

ERROR_LENGTH = 300

RAISED = re.compile(r"^(?:py4j\S*: )?((?:\w+\.)*\w*(?:Error|Exception|Interrupt): .+)$", re.MULTILINE)
"""The Python exception in the traces that Spark wraps it in. The last match is the one that ended the query."""

ENDED = re.compile(r"terminated with exception: (.+)")
"""The JVM exception in the message of a query that it ended."""


class UserError(Exception):
    """A foreseeable mistake or missing thing. Its one sentence names the problem and the next step.

    The command line prints the sentence without a traceback, and exits with code 2.
    """


class PassingError(UserError):
    """A `UserError` that may be temporary, for example an unavailable broker. Jobs that run forever retry."""


class LostWorkerError(Exception):
    """A process that works for this one ended, or did not start. Its clause says which; the work can be repeated."""


class LateWorkerError(LostWorkerError):
    """A process that works for this one did not start, as on a machine with too much load."""


def wrapped(error: BaseException) -> str | None:
    """Return the original exception in one line if Spark wrapped it in traces, else None."""
    found = RAISED.findall(str(error)) or ENDED.findall(str(error))
    return found[-1] if found else None


def one_line(error: BaseException) -> str:
    """Return the first line of an error without hidden characters, at most `ERROR_LENGTH` characters."""
    return visible_text((wrapped(error) or (str(error) or type(error).__name__).split("\n", 1)[0])[:ERROR_LENGTH])


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret replaced."""
    for secret in secrets:
        text = text.replace(secret, "(secret)")
    return text
