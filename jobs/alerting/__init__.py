"""The steps of `notify`: facts read for alerts, the table of alerts, delivery to receivers, and metrics.

When an alert fires is decided in `pipelines.gold.alerts`; who receives it is set in `jobs.config`.
"""
