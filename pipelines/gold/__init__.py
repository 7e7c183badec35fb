"""Gold rows from silver rows, as pure functions.

Inside this package, timestamps are milliseconds since the epoch, and rows are dictionaries by column name.
"""
