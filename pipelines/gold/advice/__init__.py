"""What a group should change: its churn replayed under other settings, and what each change would save.

Why the group rebalances belongs to `pipelines.gold.diagnosis.diagnosis`.
"""
