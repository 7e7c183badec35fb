"""Spark Connect servers for tests."""
