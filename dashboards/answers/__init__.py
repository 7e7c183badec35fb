"""Answers to questions about groups, as values and as text, for commands and programs."""
