"""What an installed Regroup says about itself and prepares for its user: version, shell completion and jars.

No module here starts Spark or reads a table. `build_info` uses only the standard library, because the build runs it.
"""
