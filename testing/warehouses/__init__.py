"""Warehouses made from the recorded captures: rows of bronze, silver and gold without Spark, and their files.

Invented rows are in `testing.sample`.
"""
