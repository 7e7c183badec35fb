"""The questions of the pages: SQL with bound parameters, and the rows that come back.

How SQL reaches the files is in `dashboards.lake.lake`; how rows are shown is in `dashboards.views`.
"""
