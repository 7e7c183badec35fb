"""Benchmarks: a module with a `main` is one that `regroup bench` runs; the others serve one or two of these.

What the tests use too belongs into `testing`. Nothing here is part of the wheel, and nothing imports a benchmark.
"""
