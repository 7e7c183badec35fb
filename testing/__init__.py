"""What benchmarks and tests both use: simulated groups, mutated and hostile input, receivers, sample warehouses.

A module belongs here if both `bench` and `tests` import it, or if a module here needs it. What only one of them uses
stays there. This package imports the product; it asserts nothing about the product, measures nothing for a reader and
prints nothing.
"""
