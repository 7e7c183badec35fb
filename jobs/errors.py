"""The exceptions that reach a person: their text is the whole message; and what is told of any other."""

from __future__ import annotations

ERROR_LENGTH = 300


class UserError(Exception):
    """A foreseeable mistake or missing thing, told in one sentence that names it and the next step.

    The command line prints the sentence, without a traceback, and exits with 2.
    """


class PassingError(UserError):
    """One that may pass by itself, as a broker's absence does: who goes on for ever tries again."""


def first_line(error: Exception) -> str:
    """What an error of others says, as one line of at most `ERROR_LENGTH` characters."""
    return (str(error) or type(error).__name__).splitlines()[0][:ERROR_LENGTH]
