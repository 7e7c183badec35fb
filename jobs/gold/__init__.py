"""The steps of `analyze`: its input from silver, its caches, and the threads that run it within `up`.

The functions that make gold rows are in `pipelines.gold`.
"""
