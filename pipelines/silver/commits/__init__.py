"""Offset commits of groups: their histories from Arrow columns, and the client libraries that their metadata shows.

The history of one group's commits is in `pipelines.silver.history`; stops that are found by commits are in `stops`.
"""
