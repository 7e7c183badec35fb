"""The pages' queries: SQL with bound parameters, and the returned rows.

`dashboards.lake.lake` runs the SQL over the files. `dashboards.views` displays the rows.
"""
