"""Child processes, threads that run next to the batches, locks between processes, and the record of job runs.

The work that these processes and threads do belongs in the package of that work.
"""
