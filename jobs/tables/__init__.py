"""Delta tables: create, read, append, replace and commit, with Spark, deltalake or DuckDB.

What the rows of bronze, silver or gold mean is not known here.
Deleting old rows and merging files belongs to `jobs.retention.retention`.
"""
