"""Partition reassignments between brokers: from polls and controllers' log lines to the table `reassignments`."""
