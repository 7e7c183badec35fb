"""Read-only web pages over the tables. No Spark."""
