"""Delta tables: create, read, append, replace and commit, with Spark, deltalake or DuckDB.

The meaning of the rows of bronze, silver or gold does not belong here.
Deleting old rows and merging files belongs to `jobs.retention`.
"""
