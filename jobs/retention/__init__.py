"""The steps of `maintain`: retention of rows, merged runs of commits, and compacted files.

Reading and writing of tables in general belongs to `jobs.tables`.
"""
