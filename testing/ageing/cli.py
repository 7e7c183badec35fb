"""`python -m testing.ageing.cli COMMAND …`: a command of `regroup` whose tables keep their logs for ten minutes only.

With batches back to back, two hours have twelve times as many batches as usual, and opening a table lists its log.
"""

from __future__ import annotations

from jobs.cli import program
from jobs.tables.create_tables import LOCAL_PROPERTIES

KEPT = "interval 10 minutes"

# At import, because a spawned process imports this module again.
LOCAL_PROPERTIES.update(dict.fromkeys(("delta.logRetentionDuration", "delta.deletedFileRetentionDuration"), KEPT))

if __name__ == "__main__":
    program()
