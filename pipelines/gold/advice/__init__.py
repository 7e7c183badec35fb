"""What a group should change: a replay of its churn under other settings, and the saving of each change.

The reasons for its rebalances belong to `pipelines.gold.diagnosis.diagnosis`.
"""
