"""Storms: rebalances of one group or of many that come faster than usual, their cost and what they share.

Single rebalances and their causes belong to `pipelines.gold.diagnosis.diagnosis`.
"""
