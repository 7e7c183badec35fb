"""Deploys of a group: the rebalances that belong to each, their cost, and the members that did not come back.

Why single rebalances happened belongs to `pipelines.gold.diagnosis`.
"""
