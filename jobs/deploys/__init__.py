"""The command `regroup deploys` and its arguments.

What a deploy is belongs to `pipelines.gold.deploys`, and the answer to `dashboards.answers`.
"""
