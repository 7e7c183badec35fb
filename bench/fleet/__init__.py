"""The history of a large fleet as columns of whole tables, for the benchmark of the pages.

Only that benchmark uses it; groups that are simulated event by event are in `testing.simulation`.
"""
