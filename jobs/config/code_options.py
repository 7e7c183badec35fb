"""Kafka client options that load code or run commands: whoever may edit a settings file should not get a shell by it.

From librdkafka's CONFIGURATION.md: `plugin.library.paths`, `ssl.engine.*` and `ssl.providers` load libraries,
`sasl.kerberos.kinit.cmd` is a shell command, into which the other Kerberos options are put as they are. The poll's
client, kafka-python, gets its options from the same table and none of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.config.errors import UserError

ALLOWED = "REGROUP_ALLOW_CODE_OPTIONS"
"""An environment variable, because who writes the file must not be able to allow it."""
LOADS_CODE = re.compile(r"plugin\b|ssl\.engine\b|ssl\.providers?\b|sasl\.kerberos\.kinit\.cmd")
HARMLESS = re.compile(r"[\w@./:+ =,-]*")
"""No character that a shell takes for more than text."""


def refuse_code(place: str, options: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Raise `UserError` for an option that can run code, unless the environment allows it."""
    if environment.get(ALLOWED) == "true":
        return
    for key, value in options.items():
        name = key.strip().lower()
        if LOADS_CODE.match(name) or (name.startswith("sasl.kerberos.") and not HARMLESS.fullmatch(value)):
            raise UserError(
                f"The Kafka option {key} in {place} can run code on this machine: take it out, or start with the "
                f"environment variable {ALLOWED}=true if you trust the settings file as you trust a program."
            )
