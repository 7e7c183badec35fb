"""Reading of capture folders. Their content is untrusted, so files are opened and read within limits.

The command `capture` records a live cluster. The command `replay` builds tables from a folder.
"""
