"""The rows of all silver tables, computed by one pure function of a group's ordered history: `rows.silver_rows`.

Timestamps in this package are milliseconds since the epoch. A position is `(log_epoch, source_offset)`. Positions order
all records and commits of a group, because a group uses one partition of `__consumer_offsets`.
"""
