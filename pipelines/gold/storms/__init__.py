"""Storms: rebalances of one or many groups that are more frequent than usual, their cost and common attributes.

Single rebalances and their causes belong to `pipelines.gold.diagnosis.diagnosis`.
"""
