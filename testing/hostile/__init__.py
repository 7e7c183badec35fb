"""Cheap hostile input, the tables that the product makes from it, and budgets for their cost.

Random mutations are in `testing.fuzzing`; here every input is written to cost as much as possible.
"""
