"""The contents of a catalog besides the tables: views over them, and rules for their rows."""
