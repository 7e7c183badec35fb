"""Pure functions that make the tables. No session, clock, path or write."""
