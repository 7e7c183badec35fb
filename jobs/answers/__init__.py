"""Commands that answer a question from the tables."""
