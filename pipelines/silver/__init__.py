"""The rows of all silver tables, computed by one pure function of a group's ordered history: `rows.silver_rows`.

Timestamps in this package are milliseconds since the epoch. A position is `(log_epoch, source_offset)`. Positions order
all records and commits of a group, because a group uses one partition of `__consumer_offsets`.

- A *resource* is what a member owns: a partition, a Connect connector or task, or a Streams task.
- A *stall* is the time in which a resource has no working owner.
- An *episode* is a sequence of rebalances without a pause, one row of `rebalances`.
- An *incarnation* is the time from a group's creation to its deletion. The same id may have several.
"""
