"""A real Alertmanager, an HTTP receiver, rows that cause alerts, and `notify` as a process that can be killed.

Receivers that misbehave on purpose are used by tests only, and are in `tests/alerts`.
"""
