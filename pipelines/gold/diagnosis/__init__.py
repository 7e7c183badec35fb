"""Why a group rebalances: the cause of each rebalance, its evidence, and the sentences that explain it.

What to change about it belongs to `pipelines.gold.advice.advice`.
"""
