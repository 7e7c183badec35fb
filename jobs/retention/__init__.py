"""The steps of `maintain`: how long rows are kept, merged runs of commits, and compacted files.

Reading and writing of tables in general belongs to `jobs.tables`.
"""
