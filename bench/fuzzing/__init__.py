"""What the fuzzing benchmarks report."""
