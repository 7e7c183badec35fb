"""A real Alertmanager, an HTTP receiver, rows that cause alerts, and `notify` as a process that can be killed."""
