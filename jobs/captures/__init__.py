"""Capture folders: their files, opened and read within limits, because their content is untrusted.

Recording a live cluster is the command `capture`; building tables from a folder is the command `replay`.
"""
