"""What a catalog keeps besides the tables: views over them, and rules for their rows."""
