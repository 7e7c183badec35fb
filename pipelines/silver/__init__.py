"""Silver as one pure function of a group's ordered history: `rows.silver_rows`.

Instants are milliseconds since the epoch inside this package; a position is `(log_epoch, source_offset)`, which orders
everything that one group ever wrote, since a group lives in one partition of `__consumer_offsets`.
"""
