"""Mutated input by kind, and the functions that pass it to the product and return what they found.

No function here judges a finding or prints it: the tests assert, the benchmarks report.
"""
