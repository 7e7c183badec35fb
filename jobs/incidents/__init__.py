"""The command `regroup incident`, and the captures that it attaches.

Holds no table and no state; the content of a document is in `dashboards.answers.incidents`.
"""
