"""Gold from silver: pure functions of one group's silver rows (`health`, `advice`).

Instants are milliseconds since the epoch inside this package, rows are plain dictionaries by column name.
"""
