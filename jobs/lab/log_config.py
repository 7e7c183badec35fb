"""Log configuration of the lab's Java programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.log_layouts import LAYOUTS

if TYPE_CHECKING:
    from pathlib import Path

LOGGING = """\
appenders = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log_file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = {pattern}
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
"""


def log_options(log_file: Path, *, layout: str = "default") -> list[str]:
    """Return JVM options for logging to `log_file` in a named layout, with %d in UTC."""
    config = log_file.with_suffix(".log4j2.properties")
    config.write_text(LOGGING.format(log_file=log_file, pattern=LAYOUTS[layout]), encoding="utf-8")
    return [f"-Dlog4j2.configurationFile={config}", "-Duser.timezone=UTC"]
