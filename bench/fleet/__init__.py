"""The history of a large fleet as columns of whole tables, for the benchmark of the pages."""
