"""The steps of `notify`: reading facts for alerts, the table of alerts, delivery to receivers, and metrics.

`pipelines.gold.alerts` decides when an alert fires. `jobs.config` sets the receivers.
"""
