"""Reading the tables: from a folder or through Databricks SQL, limited to what the reader may see, and cached.

What the pages ask is in `dashboards.queries`. Nothing here knows HTTP or a page, and nothing writes.
"""
