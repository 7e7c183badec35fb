"""Other tools that read `__consumer_offsets`, which benchmarks run beside Regroup."""
