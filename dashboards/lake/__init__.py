"""Reading the tables from a folder or through Databricks SQL, limited to what the reader may see, with a cache.

The pages' queries are in `dashboards.queries`. This package does not depend on HTTP or the pages, and never writes.
"""
