"""Why a group rebalances: the cause of each rebalance, its evidence, and the sentences that explain it.

Recommended changes belong to `pipelines.gold.advice.advice`.
"""
