"""The one exception that reaches a person: its text is the whole message."""

from __future__ import annotations


class UserError(Exception):
    """A foreseeable mistake or missing thing, told in one sentence that names it and the next step.

    The command line prints the sentence, without a traceback, and exits with 2.
    """
