"""Decoders for Kafka's bytes: records of `__consumer_offsets`, the member data inside them and record batches of a log
segment. `json_lines` formats decoded records as JSON. This package knows no table, no cluster and no group history.
"""
