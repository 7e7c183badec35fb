"""Bytes of Kafka to values: records of `__consumer_offsets`, the member data inside them, batches of records in a log
segment, and decoded records as JSON lines. Nothing here knows a table, a cluster or a group's history.
"""
