"""The steps of `build`: its input from bronze, the groups to rebuild, and the division of the work.

The functions that make silver rows from history are in `pipelines.silver`.
"""
