"""Kafka client options that load code or run commands. Write access to a settings file must not give a shell.

Source: librdkafka's CONFIGURATION.md. `plugin.library.paths`, `ssl.engine.*` and `ssl.providers` load libraries.
`sasl.kerberos.kinit.cmd` is a shell command that contains the other Kerberos options unquoted. The poll's client,
kafka-python, gets its options from the same table but supports none of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.config.errors import UserError

ALLOWED = "REGROUP_ALLOW_CODE_OPTIONS"
"""An environment variable, so that the author of the settings file cannot set it."""
LOADS_CODE = re.compile(r"plugin\b|ssl\.engine\b|ssl\.providers?\b|sasl\.kerberos\.kinit\.cmd")
HARMLESS = re.compile(r"[\w@./:+ =,-]*")
"""Characters that have no special meaning in a shell."""


def refuse_code(section: str, options: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Raise `UserError` for an option that can run code, unless the environment allows it."""
    if environment.get(ALLOWED) == "true":
        return
    for key, value in options.items():
        name = key.strip().lower()
        if LOADS_CODE.match(name) or (name.startswith("sasl.kerberos.") and not HARMLESS.fullmatch(value)):
            raise UserError(
                f"The Kafka option {key} in {section} can run code on this machine: remove it, or start with the "
                f"environment variable {ALLOWED}=true if you trust the settings file like a program."
            )
