"""The arguments of every command, which `regroup --help` reads without importing the commands."""
