"""Child processes, threads beside the batches, locks between processes, the record of job runs, and output.

What these processes and threads do belongs to the room of that work.
"""
