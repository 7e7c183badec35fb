"""Readers of the pages: over HTTP and in a browser, one at a time and many at once.

Budgets, and what is printed, belong to `bench.pages`.
"""
