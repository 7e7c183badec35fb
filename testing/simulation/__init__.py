"""Simulated groups and clusters as rows of silver, and which of their storms the product finds.

Records of simulated groups do not belong here: `bench.load` makes those. Histories that a test writes step by step are
beside that test.
"""
