"""The command `regroup deploys` and its arguments.

The definition of a deploy belongs to `pipelines.gold.deploys`, and the answer to `dashboards.answers`.
"""
