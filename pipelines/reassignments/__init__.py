"""Partitions that move between brokers: from polls and controllers' lines to `reassignments`."""
