"""The steps of `build`: what a batch reads of bronze, which groups it rebuilds, and how the work is divided.

The functions that make silver rows from history are in `pipelines.silver`.
"""
