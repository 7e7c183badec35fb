"""`python -m testing.ageing.cli COMMAND …`: a command of `regroup` whose tables keep their logs for ten minutes only.

With batches back to back, two hours have twelve times as many batches as usual, and opening a table lists its log.
"""

from __future__ import annotations

from jobs.cli import program
from jobs.tables.create_tables import LOCAL_PROPERTIES
from testing.ageing.short_logs import kept_for

# At import, because a spawned process imports this module again.
LOCAL_PROPERTIES.update(kept_for("interval 10 minutes"))

if __name__ == "__main__":
    program()
