"""Child processes, threads beside the batches, locks between processes, and the record of job runs.

What these processes and threads do belongs to the room of that work.
"""
