"""Settings: read from file, environment and flags, checked, and refused with one sentence if they are wrong.

The exceptions whose text a person reads, and the functions that print to the terminal, are here too.
Nothing here opens a connection, starts a process or reads a table.
"""
