"""What benchmarks and tests both use: simulated groups, mutated and hostile input, receivers, sample warehouses.

A module belongs here if `bench` and `tests` both import it, or if a module here needs it; what only one of them uses
stays there. This package imports the product, and neither of the two. Its functions return what they found: tests
assert on it, benchmarks print it.
"""
