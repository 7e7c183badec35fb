"""Settings: read from file, environment and flags, checked, and rejected with one sentence if they are wrong.

Also the exceptions whose text users read, and the functions that print to the terminal.
Nothing here opens a connection, starts a process or reads a table.
"""
