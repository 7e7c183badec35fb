"""What goes wrong with groups besides single rebalances: patterns, each with its evidence and what to do next.

The cause of each rebalance belongs to `pipelines.gold.diagnosis`. docs/patterns.md explains every pattern.
"""
