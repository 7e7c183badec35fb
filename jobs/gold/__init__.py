"""The steps of `analyze`: what it reads of silver, what it remembers, and the threads that run it beside `up`.

The functions that make gold rows are in `pipelines.gold`.
"""
