"""Read-only pages over the tables. No Spark."""
