"""The exceptions that reach a person: their text is the whole message; and what is told of any other."""

from __future__ import annotations

import re

from schemas.visible import visible_text

ERROR_LENGTH = 300

RAISED = re.compile(r"^(?:py4j\S*: )?((?:\w+\.)*\w*(?:Error|Exception|Interrupt): .+)$", re.MULTILINE)
"""What Python raised, in the traces that Spark wraps it in; the last is what ended it."""

ENDED = re.compile(r"terminated with exception: (.+)")
"""What the JVM raised, as a query says that ended of it."""


class UserError(Exception):
    """A foreseeable mistake or missing thing, told in one sentence that names it and the next step.

    The command line prints the sentence, without a traceback, and exits with 2.
    """


class PassingError(UserError):
    """One that may pass by itself, as a broker's absence does: who goes on for ever tries again."""


def wrapped(error: BaseException) -> str | None:
    """What failed, in one line, where Spark wraps it in traces."""
    found = RAISED.findall(str(error)) or ENDED.findall(str(error))
    return found[-1] if found else None


def one_line(error: BaseException) -> str:
    """Return the first line of an error, without hidden characters, at most `ERROR_LENGTH` of them."""
    return visible_text((wrapped(error) or (str(error) or type(error).__name__).split("\n", 1)[0])[:ERROR_LENGTH])
